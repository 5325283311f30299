// Package images keeps unpacked images on this machine, layer by layer, for engines that mount them as overlays.
//
// Vocabulary:
//
//   - A layer is a folder of files, never written to once it is there. Its name follows from its content id (the
//     digest of its uncompressed tar stream), or, for one that Commit made, from a random id.
//   - An image is a record: a digest, its layers from the lowest up, and what its configuration says.
//   - A ref is a name for an image that the store was told to keep.
//
// Where images come from: an OCI layout folder ("oci:PATH" or "oci:PATH:TAG"), a tar archive of one or of `docker
// save` ("docker-archive:PATH", "oci-archive:PATH"), a plain path to either, the store's own refs, the local Docker
// daemon, and a registry.
//
// On disk, below the store's folder:
//
//	lock      held shared by who reads or adds, alone by GC
//	l/<key>   a layer
//	m/<key>   what is known of it
//	i/<hex>   an image, by its digest
//	r/<hex>   a ref, by its digest
//	t/        work under way: what lies there while nobody holds the lock is a crash's
//
// A layer is unpacked below t/ and renamed into place: it is there as a whole or not at all, and who is slower of two
// throws its own away. Many processes may share a store.
package images
