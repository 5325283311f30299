// Package wire is the protocol between the host and the box agent inside a sandbox.
//
// A frame is a length (4 bytes, big endian, of what follows), a kind (1 byte), a stream id (8 bytes)
// and a payload. The host opens with Hello and gets Welcome; then every request carries a stream id
// of the host's choice, any number may be open at once, and each is answered by exactly one frame
// with the same id: Reply with the payload that its kind defines, or Fail.
//
// Two further kinds of connection carry what programs inside reach of the world, apart from calls, so
// that neither waits for the other. One opens with KindRelay, and on it the agent asks, one name after
// another, what may be reached. The others open with KindPark and lie idle until a program inside
// connects somewhere: the agent then names the place in a KindDial, and the rest of the connection is
// that program's stream. Flow control is the kernel's; how many there are is the host's choice.
//
// Payloads are fields in a fixed order without names: unsigned and zigzag varints, single-byte
// booleans, and byte strings led by their length. There is no text encoding, since commands and
// output are any bytes. A decoder refuses what is too long, cut off, or followed by anything.
//
// Both sides trust nothing: the agent shares a machine with an adversary, and the host may be
// talking to one. Decoding never allocates more than a small multiple of the bytes that arrived.
package wire
