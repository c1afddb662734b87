package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// rabbitControl controls a broker.
type rabbitControl interface {
	// ctl runs rabbitmqctl and returns its output.
	ctl(args ...string) (string, error)
	// eval returns the value of an Erlang expression, which ends with a full stop.
	eval(expr string) (string, error)
}

// ctl waits until the broker takes commands. It takes connections a moment earlier.
func (r *localRabbit) ctl(args ...string) (out string, err error) {
	return r.whenReached(func() (string, error) {
		return r.tool("", findRabbit("rabbitmqctl"), append([]string{"-q", "-n", r.node}, args...)...)
	})
}

// unreached are the complaints of tools that did not reach the broker: it is starting, or has too
// little processor time.
var unreached = []string{"requires the 'rabbit' app to be running", "unable to perform an operation on node", "failed to connect to node"}

func (r *localRabbit) whenReached(command func() (string, error)) (out string, err error) {
	_ = await("the broker to take commands", func() (bool, error) {
		out, err = command()
		return err == nil || !slices.ContainsFunc(unreached, func(c string) bool { return strings.Contains(err.Error(), c) }), err
	})
	return out, err
}

// evals numbers the node names of erl_call. By default it is always c17, and a broker accepts one
// node of a name at a time.
var evals atomic.Uint64

// eval needs 20 ms where rabbitmqctl needs half a second, if this Erlang has its C interface.
func (r *localRabbit) eval(expr string) (string, error) {
	call := findErlang("erl_call")
	if call == "" {
		return r.ctl("eval", expr)
	}
	as := fmt.Sprintf("call%d-%d", os.Getpid(), evals.Add(1))
	out, err := r.whenReached(func() (string, error) {
		return r.tool(expr+"\n", call, "-h", as, "-address", address(r.dist), "-e")
	})
	if err != nil {
		return "", err
	}
	value, ok := strings.CutPrefix(out, "{ok, ")
	if !ok {
		return "", fmt.Errorf("evaluating %s: %s", expr, out)
	}
	return strings.TrimSuffix(value, "}"), nil
}

// tool runs a program that finds the broker by the environment.
func (r *localRabbit) tool(in, tool string, args ...string) (string, error) {
	if r.ended() {
		return "", fmt.Errorf("running %s: the broker is not running", filepath.Base(tool))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Env, cmd.Stdin, cmd.WaitDelay = r.env(), strings.NewReader(in), patience // of what it leaves behind
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running %s: %w\n%s", strings.Join(cmd.Args, " "), errors.Join(err, context.Cause(ctx)), out)
	}
	return strings.TrimSpace(string(out)), nil
}

// sync writes the buffers of the broker's disk tables.
func (r *localRabbit) sync() error {
	return evalOK(r, "lists:foreach(fun dets:sync/1, dets:all()).")
}

// memoryWatermark, a part of the machine's memory, is the broker's own default.
const memoryWatermark = "0.4"

func (r *localRabbit) setMemoryAlarm(on bool) error {
	watermark := memoryWatermark
	if on {
		watermark = "0"
	}
	if _, err := r.ctl("set_vm_memory_high_watermark", watermark); err != nil {
		return err
	}
	return await("the alarm to change", func() (final bool, err error) {
		alarms, err := r.eval("rabbit_alarm:get_alarms().")
		if err == nil && strings.Contains(alarms, "memory") != on {
			err = fmt.Errorf("alarms %s", alarms)
		}
		return false, err
	})
}

// findErlang finds a program of the Erlang that the broker runs on, or returns "".
func findErlang(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	erl, err := filepath.EvalSymlinks(findServer("erl"))
	if err != nil {
		return ""
	}
	bin := filepath.Dir(erl)
	for _, pattern := range []string{filepath.Join(bin, name), filepath.Join(bin, "../lib/erl_interface-*/bin", name)} {
		if paths, _ := filepath.Glob(pattern); len(paths) > 0 { // the pattern is well formed
			return paths[0]
		}
	}
	return ""
}
