package client

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/testenv"
)

// serveSentinel starts a Sentinel that watches a master under the name main, and returns its
// address.
func serveSentinel(t *testing.T, master *testenv.RedisServer, config ...string) string {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("no redis-server on the PATH")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().(*net.TCPAddr)
	must(t, l.Close())
	masterHost, masterPort, _ := strings.Cut(master.Addr(), ":")
	lines := append([]string{
		"bind 127.0.0.1", fmt.Sprintf("port %d", addr.Port),
		fmt.Sprintf("sentinel monitor main %s %s 1", masterHost, masterPort),
	}, config...)
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	must(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	sentinel := exec.Command(binary, file, "--sentinel")
	must(t, sentinel.Start())
	t.Cleanup(func() { _ = sentinel.Process.Kill(); _ = sentinel.Wait() })
	awaitDial(t, addr.String())
	return addr.String()
}

func awaitDial(t *testing.T, addr string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close()
			return
		}
	}
	t.Fatalf("no server listens on %s", addr)
}

func TestConnectThroughSentinel(t *testing.T) {
	t.Parallel()
	master := testenv.Redis(t, testenv.Private())
	addr := serveSentinel(t, master)
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
	addr := serveSentinel(t, master, "requirepass hunter2", "sentinel auth-pass main hunter4")
	configure(t, master, "config", "set", "requirepass", "hunter4")
	mustConnect(t, "zsetpoll://:hunter4@"+addr+"/orders?master=main&sentinel_password=hunter2")
	mustNotConnect(t, "zsetpoll://:hunter4@"+addr+"/orders?master=main&sentinel_password=hunter3", "WRONGPASS")
	mustNotConnect(t, "zsetpoll://:hunter3@"+addr+"/orders?master=main&sentinel_password=hunter2", "WRONGPASS")
	mustNotConnect(t, "zsetpoll://:hunter4@"+addr+"/orders?master=main", "NOAUTH")
}
