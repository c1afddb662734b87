package interop

import "slices"

// Versions are the releases of Redisson to test against: both member layouts, each with two default
// codecs or two generations of the library, and the newest.
func Versions() []string { return []string{"3.16.8", "3.20.1", "3.52.0", "4.7.0"} }

// Codec is how Redisson turns a value into bytes.
type Codec string

// The codecs. Not every release has all of them: see [Codecs].
const (
	Default     Codec = "default" // the release's default codec
	String      Codec = "string"
	Bytes       Codec = "bytes"
	Jackson     Codec = "jackson"
	Jackson3    Codec = "jackson3"    // 4.x
	Marshalling Codec = "marshalling" // 3.x
	Kryo5       Codec = "kryo5"
)

// Codecs returns the codecs of one of the [Versions].
func Codecs(version string) []Codec {
	codecs := []Codec{Default, String, Bytes, Jackson, Kryo5}
	if slices.Contains([]string{"3.16.8", "3.20.1", "3.52.0"}, version) {
		return append(codecs, Marshalling)
	}
	return append(codecs, Jackson3)
}
