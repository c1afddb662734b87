package interop;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;

/**
 * An application's object, of a class of its own. It is not final:
 * Jackson writes no class for those, and then cannot read them.
 */
public class Order implements Serializable {
    private static final long serialVersionUID = 1L;

    private String id;
    private long amount;
    private ArrayList<String> tags = new ArrayList<>();

    public Order() {
    }

    Order(String id, long amount, List<String> tags) {
        this.id = id;
        this.amount = amount;
        this.tags = new ArrayList<>(tags);
    }

    public String getId() {
        return id;
    }

    public void setId(String id) {
        this.id = id;
    }

    public long getAmount() {
        return amount;
    }

    public void setAmount(long amount) {
        this.amount = amount;
    }

    public ArrayList<String> getTags() {
        return tags;
    }

    public void setTags(ArrayList<String> tags) {
        this.tags = tags;
    }
}
