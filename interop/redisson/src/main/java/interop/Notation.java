package interop;

import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;

/**
 * Values as text without blanks: a letter for the type, then the content. Strings are the hex
 * digits of their UTF-16 units, so that lone surrogates survive.
 */
final class Notation {
    private final String text;
    private int at;

    private Notation(String text) {
        this.text = text;
    }

    static Object parse(String text) {
        Notation notation = new Notation(text);
        Object value = notation.value();
        if (notation.at != text.length()) {
            throw new IllegalArgumentException("something follows the value: " + text.substring(notation.at));
        }
        return value;
    }

    private Object value() {
        char type = text.charAt(at++);
        switch (type) {
            case 'n': return null;
            case 't': return Boolean.TRUE;
            case 'f': return Boolean.FALSE;
            case 's': return string(word());
            case 'b': return Base64.getDecoder().decode(word());
            case 'i': return Integer.valueOf(word());
            case 'l': return Long.valueOf(word());
            case 'a': return list();
            default: throw new IllegalArgumentException("no value begins with " + type);
        }
    }

    private String word() {
        int from = at;
        while (at < text.length() && text.charAt(at) != ',' && text.charAt(at) != ']') {
            at++;
        }
        return text.substring(from, at);
    }

    private ArrayList<Object> list() {
        ArrayList<Object> list = new ArrayList<>();
        at++; // the bracket
        while (text.charAt(at) != ']') {
            list.add(value());
            if (text.charAt(at) == ',') {
                at++;
            }
        }
        at++;
        return list;
    }

    private static String string(String hex) {
        char[] units = new char[hex.length() / 4];
        for (int i = 0; i < units.length; i++) {
            units[i] = (char) Integer.parseInt(hex.substring(4 * i, 4 * i + 4), 16);
        }
        return new String(units);
    }

    static String print(Object value) {
        StringBuilder out = new StringBuilder();
        print(out, value);
        return out.toString();
    }

    private static void print(StringBuilder out, Object value) {
        if (value == null) {
            out.append('n');
        } else if (value instanceof Boolean) {
            out.append((Boolean) value ? 't' : 'f');
        } else if (value instanceof CharSequence) {
            printString(out.append('s'), (CharSequence) value);
        } else if (value instanceof byte[]) {
            out.append('b').append(Base64.getEncoder().encodeToString((byte[]) value));
        } else if (value instanceof Integer) {
            out.append('i').append(value);
        } else if (value instanceof Long) {
            out.append('l').append(value);
        } else if (value instanceof Collection) {
            printList(out.append('a'), (Collection<?>) value);
        } else {
            throw new IllegalArgumentException("values of " + value.getClass() + " have no notation");
        }
    }

    private static void printString(StringBuilder out, CharSequence string) {
        for (int i = 0; i < string.length(); i++) {
            char unit = string.charAt(i);
            for (int shift = 12; shift >= 0; shift -= 4) {
                out.append(Character.forDigit(unit >> shift & 15, 16));
            }
        }
    }

    private static void printList(StringBuilder out, Iterable<?> values) {
        out.append('[');
        String comma = "";
        for (Object value : values) {
            print(out.append(comma), value);
            comma = ",";
        }
        out.append(']');
    }
}
