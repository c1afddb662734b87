package check

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

func productionPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../production.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

var (
	queryCell = regexp.MustCompile("(?m)^\\| [^|]* \\| `([^`]*delayq_[^`]*)` \\|$")
	yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")
)

// The queries of docs/production.md are of metrics and labels that exist.
func TestProductionQueries(t *testing.T) {
	c := newCatalogue(t)
	queries := queryCell.FindAllStringSubmatch(productionPage(t), -1)
	for _, m := range queries {
		if err := c.check(m[1]); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
	if len(queries) < 4 {
		t.Errorf("docs/production.md has only the queries %q", queries)
	}
}

// The manifest leaves Consume the time that it takes by default: Drain, and five seconds more.
func TestProductionManifest(t *testing.T) {
	const stops = 35 * time.Second
	blocks := yamlBlock.FindAllStringSubmatch(productionPage(t), -1)
	if len(blocks) != 1 {
		t.Fatalf("docs/production.md has %d manifests", len(blocks))
	}
	var manifest struct {
		Spec struct {
			Grace      int `yaml:"terminationGracePeriodSeconds"`
			Containers []struct {
				Live  probe `yaml:"livenessProbe"`
				Ready probe `yaml:"readinessProbe"`
			}
		}
	}
	if err := yaml.Unmarshal([]byte(blocks[0][1]), &manifest); err != nil {
		t.Fatal(err)
	}
	if grace := time.Duration(manifest.Spec.Grace) * time.Second; grace < stops {
		t.Errorf("the manifest leaves %v, and Consume may take %v", grace, stops)
	}
	for _, c := range manifest.Spec.Containers {
		for _, p := range []probe{c.Live, c.Ready} {
			if p.Get.Path == "" || !strings.Contains(productionPage(t), `"GET `+p.Get.Path+`"`) {
				t.Errorf("no handler of the page has the path %q", p.Get.Path)
			}
		}
	}
}

type probe struct {
	Get struct{ Path string } `yaml:"httpGet"`
}
