package testenv

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// env is the environment of the broker and of its tools, without that of the machine's own broker.
func (r *localRabbit) env() []string {
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool { // of another broker
		return strings.HasPrefix(variable, "RABBITMQ_") || strings.HasPrefix(variable, "ERL_") || strings.HasPrefix(variable, "NOTIFY_SOCKET=")
	})
	return append(env,
		"LC_ALL=C.UTF-8",
		"HOME="+r.dir, // the cookie is there
		"RABBITMQ_NODENAME="+r.node,
		"RABBITMQ_DIST_PORT="+strconv.Itoa(r.dist),
		"RABBITMQ_CONF_ENV_FILE="+r.file("rabbitmq-env.conf"),
		"RABBITMQ_CONFIG_FILE="+r.file("rabbitmq.conf"),
		"RABBITMQ_CONFIG_FILES="+r.file("conf.d/*.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE="+r.file("advanced.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+r.file("plugins"),
		"RABBITMQ_MNESIA_BASE="+r.file("data"),
		"RABBITMQ_LOG_BASE="+r.file("log"),
		"RABBITMQ_PID_FILE="+r.file("pid"),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+noSpinning+" -kernel inet_dist_use_interface {127,0,0,1}",
		"RABBITMQ_CTL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		"ERL_CRASH_DUMP_SECONDS=0", // the log says enough
		"ERL_EPMD_ADDRESS="+localhost,
		"ERL_EPMD_PORT="+strconv.Itoa(r.epmd.port),
		"ERL_FLAGS=-start_epmd false",
		// makes the script replace itself by the broker, so that signals reach the broker
		"RUNNING_UNDER_SYSTEMD=1",
	)
}

// noSpinning makes a broker's idle schedulers give up the processors at once, since the tests and
// other brokers need them.
const noSpinning = "+sbwt none +sbwtdcpu none +sbwtdio none"
