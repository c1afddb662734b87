package interop;

import java.util.HashMap;
import java.util.Map;

import org.redisson.client.codec.Codec;

/** Codecs by their short names. They are looked up by class, since no release has them all. */
final class Codecs {
    private static final Map<String, String> CLASSES = new HashMap<>();

    static {
        CLASSES.put("string", "org.redisson.client.codec.StringCodec");
        CLASSES.put("bytes", "org.redisson.client.codec.ByteArrayCodec");
        CLASSES.put("jackson", "org.redisson.codec.JsonJacksonCodec");
        CLASSES.put("jackson3", "org.redisson.codec.JsonJackson3Codec");
        CLASSES.put("marshalling", "org.redisson.codec.MarshallingCodec");
        CLASSES.put("kryo5", "org.redisson.codec.Kryo5Codec");
    }

    private final Map<String, Codec> made = new HashMap<>();

    /** One codec of a kind for all: some are slow to make, and all may be shared. */
    synchronized Codec get(String name) throws ReflectiveOperationException {
        Codec codec = made.get(name);
        if (codec == null) {
            codec = make(name);
            made.put(name, codec);
        }
        return codec;
    }

    private static Codec make(String name) throws ReflectiveOperationException {
        String type = CLASSES.get(name);
        if (type == null) {
            throw new IllegalArgumentException("codec " + name + " is unknown; known: default " + CLASSES.keySet());
        }
        return (Codec) Class.forName(type).getDeclaredConstructor().newInstance();
    }
}
