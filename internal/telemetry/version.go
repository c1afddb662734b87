package telemetry

import (
	"runtime/debug"
	"sync"
)

// version is the library's version in this program, as the scope of metrics and spans shows it.
var version = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return versionIn(info)
})

// versionIn returns the version that a program was built with: "(devel)" for a checkout, "" where
// the program does not know.
func versionIn(info *debug.BuildInfo) string {
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		switch {
		case m.Path != scopeName:
		case m.Replace != nil:
			return m.Replace.Version
		default:
			return m.Version
		}
	}
	return ""
}
