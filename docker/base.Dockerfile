# proctor/base: what the demo's and the tests' sandboxes are made from. build-base.sh makes the same image
# from Debian packages where no image registry answers; both take the list from base.packages.
FROM debian:bookworm-slim
COPY base.packages /tmp/base.packages
RUN apt-get update \
 && grep -v '^#' /tmp/base.packages | DEBIAN_FRONTEND=noninteractive xargs apt-get install -y --no-install-recommends \
 && rm -rf /var/lib/apt/lists/* /tmp/base.packages
ENV LANG=C.UTF-8
CMD ["bash"]
