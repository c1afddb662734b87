package redisson

import (
	"bytes"
	"encoding/json"
)

// writtenBy names the codec of Redisson's that seems to have written a payload, by its first bytes;
// "" where nothing tells. Text that people write hardly begins like that.
func writtenBy(payload []byte) string {
	switch {
	case len(payload) < 2:
		return ""
	case payload[0] == 4 && bytes.IndexByte(riverTypes, payload[1]) >= 0:
		return "MarshallingCodec"
	case payload[0] == 2, payload[0] == 3:
		return "Kryo5Codec"
	case bytes.HasPrefix(payload, []byte(`{"@class":`)), bytes.HasPrefix(payload, []byte(`["java.`)),
		payload[0] == '"' && payload[len(payload)-1] == '"' && json.Valid(payload):
		return "JsonJacksonCodec"
	default:
		return ""
	}
}

// riverTypes are the bytes that may follow the version in a payload of JBoss Marshalling: strings
// of four lengths, int, array, objects.
var riverTypes = []byte{0x3d, 0x3e, 0x3f, 0x40, 0x4b, 0x42, 0x04, 0x09}

// warnOfCodec warns once that a queue of [String] has payloads that another codec seems to have
// written, which decode without an error.
func (s *store) warnOfCodec(payload []byte) {
	if s.codec != String {
		return
	}
	if codec := writtenBy(payload); codec != "" && s.warned.CompareAndSwap(false, true) {
		s.Log.Warn("delayq: a body begins as those do that Java writes with another codec; give the queue that codec on both sides",
			"queue", s.names.destination, "codec", s.codec.Name(), "looks_like", codec, "begins", payload[:min(len(payload), shownBytes)])
	}
}
