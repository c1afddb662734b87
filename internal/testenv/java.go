package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const javaRemedy = "install a JDK and Maven (on Debian: apt-get install default-jdk-headless maven)"

// Java finds the program that runs Java. Its error is for Require.
func Java() (string, error) { return findJava("java") }

// Maven finds the program that builds Java programs; it needs a compiler, too. Its error is for
// Require.
func Maven() (string, error) {
	if _, err := findJava("javac"); err != nil {
		return "", err
	}
	return findJava("mvn")
}

func findJava(name string) (string, error) {
	if err := checkRequire(os.Getenv(requireVar)); err != nil {
		return "", err
	}
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if path, err := exec.LookPath(filepath.Join(home, "bin", name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", name, &absentError{"java", javaRemedy})
	}
	return path, nil
}
