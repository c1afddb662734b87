package redisson

// JacksonString is JsonJacksonCodec for strings, and Jackson3String is JsonJackson3Codec for them
// (Redisson 4). They differ in what they write beyond the BMP: two escapes (Jackson 2), or UTF-8
// (Jackson 3). Both read every JSON string, however it is escaped and with space around it, though
// Java writes each in one form only.
//
// Redisson writes a byte[] as a string in base64, which these give as it is, and so does Java.
var (
	JacksonString  Codec = jacksonString{"jackson", escaping{pairs: true}}
	Jackson3String Codec = jacksonString{"jackson3", escaping{}}
)

type jacksonString struct {
	name string
	escaping
}

func (c jacksonString) Name() string { return c.name }

func (c jacksonString) Encode(body []byte) ([]byte, error) {
	if _, err := units(body); err != nil {
		return nil, err
	}
	return c.appendQuoted(make([]byte, 0, len(body)+2), body), nil
}

func (c jacksonString) Decode(payload []byte) ([]byte, error) {
	if !validJSON(payload) {
		return nil, unreadable(c.name, "not JSON in UTF-8", payload)
	}
	b := skipSpace(payload)
	if b[0] != '"' {
		return nil, unreadable(c.name, "JSON, but no string"+ofClass(classOf(b))+"; the codec "+c.name+"-object reads JSON that names its class, bytes reads all", payload)
	}
	literal, _ := cutLiteral(b)
	return unquote(literal), nil
}
