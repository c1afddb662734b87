package client

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/testenv"
)

func TestConnectThroughSentinel(t *testing.T) {
	t.Parallel()
	master := testenv.Redis(t, testenv.Private())
	addr := testenv.Sentinel(t, "main", master.Addr())
	mustConnect(t, "zsetpoll://"+addr+"/orders?master=main&db=2")
	mustConnect(t, "zsetpoll://127.0.0.1:1/orders?master=main&addr="+addr)
	if keyspace := master.Client(t).InfoMap(t.Context(), "keyspace").Val()["Keyspace"]; keyspace["db2"] == "" {
		t.Errorf("keys in %v", keyspace)
	}
	mustNotConnect(t, "zsetpoll://"+addr+"/orders?master=other", `connecting to master "other" of Sentinel at `+addr+": ", redis.Nil.Error())
}

func TestConnectThroughSentinelWithPasswords(t *testing.T) {
	t.Parallel()
	master := testenv.Redis(t, testenv.Private())
	addr := testenv.Sentinel(t, "main", master.Addr(), "requirepass hunter2", "sentinel auth-pass main hunter4")
	configure(t, master, "config", "set", "requirepass", "hunter4")
	mustConnect(t, "zsetpoll://:hunter4@"+addr+"/orders?master=main&sentinel_password=hunter2")
	mustNotConnect(t, "zsetpoll://:hunter4@"+addr+"/orders?master=main&sentinel_password=hunter3", "WRONGPASS")
	mustNotConnect(t, "zsetpoll://:hunter3@"+addr+"/orders?master=main&sentinel_password=hunter2", "WRONGPASS")
	mustNotConnect(t, "zsetpoll://:hunter4@"+addr+"/orders?master=main", "NOAUTH")
}
