package beside

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/reports/result"
)

var update = flag.Bool("update", false, "write the golden table anew")

// lan966x is made of the published figures of the regression and of invented runs.
func lan966x() []result.Variant {
	figure := func(metric, unit string, value float64, role result.Role) result.Published {
		return result.Published{Source: "seed_lan966x_2023", Metric: metric, Unit: unit, Value: value, Role: role}
	}
	variant := func(label string, role result.Role, published, simulated [2]float64, more ...result.Published) result.Variant {
		v := result.Variant{Label: label}
		for seed := range uint64(3) {
			jitter := 1 + 0.001*(float64(seed)-1)
			v.Runs = append(v.Runs, result.Run{
				Seed: seed,
				Metrics: map[string]result.Metric{
					"goodput":    {Value: simulated[0] * jitter, Unit: "bit/s"},
					"interrupts": {Value: simulated[1] * jitter, Unit: "1/s"},
				},
				Published: append([]result.Published{
					figure("interrupts", "1/s", published[1], role),
					figure("goodput", "bit/s", published[0], role),
				}, more...),
			})
		}
		return v
	}
	return []result.Variant{
		variant("always_raise", result.RoleFitted, [2]float64{529e6, 100}, [2]float64{530e6, 110}),
		variant("skip_in_net_rx_action", result.RolePredicted, [2]float64{396e6, 9700}, [2]float64{410e6, 7000},
			result.Published{Source: "elsewhere", Metric: "goodput", Unit: "bit/s", Value: 400e6, Role: result.RolePredicted},
			result.Published{Source: "elsewhere", Metric: "colour", Unit: "1", Value: 7, Role: result.RolePredicted}),
		variant("clear_flag_always", result.RolePredicted, [2]float64{401e6, 9700}, [2]float64{520e6, 9000}),
	}
}

func TestRows(t *testing.T) {
	rows := Rows(lan966x())
	var order []string
	for _, r := range rows {
		order = append(order, r.Metric+" "+r.Source+" "+r.Variant)
	}
	if diff := cmp.Diff([]string{
		"goodput seed_lan966x_2023 always_raise",
		"goodput seed_lan966x_2023 skip_in_net_rx_action",
		"goodput seed_lan966x_2023 clear_flag_always",
		"goodput elsewhere skip_in_net_rx_action",
		"interrupts seed_lan966x_2023 always_raise",
		"interrupts seed_lan966x_2023 skip_in_net_rx_action",
		"interrupts seed_lan966x_2023 clear_flag_always",
		"colour elsewhere skip_in_net_rx_action",
	}, order); diff != "" {
		t.Fatal(diff)
	}
	base, skip, clear, lone, colour := rows[0], rows[1], rows[2], rows[3], rows[7]
	if base.PublishedChange != nil || base.Agrees != nil || base.Base != "always_raise" || base.N != 3 {
		t.Errorf("the base: %+v", base)
	}
	if *skip.Ratio < 1.03 || *skip.Ratio > 1.04 || *skip.PublishedChange != 396e6/529e6 || !*skip.Agrees {
		t.Errorf("skip: %+v", skip)
	}
	if *clear.Agrees {
		t.Error("a loss of 2 % agrees with one of 24 %")
	}
	if lone.PublishedChange != nil || lone.Base != "" {
		t.Errorf("a figure without a base: %+v", lone)
	}
	if colour.Simulated != nil || colour.Ratio != nil || colour.N != 0 {
		t.Errorf("a metric that was not simulated: %+v", colour)
	}
}

// A change that is published as none has to be simulated as none.
func TestNoChangeIsAPredictionToo(t *testing.T) {
	for _, test := range []struct {
		published, simulated float64
		want                 bool
	}{
		{1.01, 0.99, true}, {1.01, 1.2, false}, {1.3, 1.01, false}, {0.5, 0.9, true}, {97, 40, true}, {0.9, 1.1, false},
	} {
		if got := way(1, test.published) == way(1, test.simulated); got != test.want {
			t.Errorf("%v against %v: %v", test.published, test.simulated, got)
		}
	}
}

// From 0 a change has a way, but no factor.
func TestChangeFromNothing(t *testing.T) {
	variants := lan966x()[:2]
	for i := range variants[0].Runs {
		variants[0].Runs[i].Metrics["interrupts"] = result.Metric{Value: 0, Unit: "1/s"}
	}
	rows := Rows(variants)
	r := rows[len(rows)-2]
	if r.Metric != "interrupts" || r.SimulatedChange != nil || r.Agrees == nil || !*r.Agrees {
		t.Errorf("%+v", r)
	}
	if got := reading(rows); !strings.Contains(got, "Of 2 predicted changes 2 go the published way") ||
		!strings.Contains(got, "the worst that is not from or to 0 is off by a factor of 1.03.") {
		t.Errorf("got %q", got)
	}
	if got := change(r, r.SimulatedChange); got != "from 0" {
		t.Errorf("got %q", got)
	}
	if got := reading(rows[len(rows)-3 : len(rows)-1]); !strings.HasSuffix(got, "counts as none).\n") {
		t.Errorf("got %q", got)
	}
	for i := range variants[0].Runs {
		variants[0].Runs[i].Published[0].Value = 0
		variants[1].Runs[i].Metrics["interrupts"] = result.Metric{Value: 0, Unit: "1/s"}
	}
	rows = Rows(variants)
	if r := rows[len(rows)-2]; r.PublishedChange != nil || r.Ratio == nil || *r.Agrees {
		t.Errorf("%+v", r)
	}
}

// A figure that was published once and holds for two variants predicts no change.
func TestSameFigureTwice(t *testing.T) {
	variants := lan966x()[:2]
	for i := range variants[1].Runs {
		variants[1].Runs[i].Published = variants[0].Runs[i].Published
	}
	if r := Rows(variants)[1]; r.Base != "always_raise" || r.Ratio == nil || r.PublishedChange != nil || r.Agrees != nil {
		t.Errorf("%+v", r)
	}
}

// A figure in another unit than the metric's is shown, but not compared.
func TestOtherUnit(t *testing.T) {
	variants := lan966x()
	for i := range variants[0].Runs {
		variants[0].Runs[i].Published[1].Unit = "B/s"
	}
	if r := Rows(variants)[0]; r.Simulated != nil || r.Ratio != nil {
		t.Errorf("%+v", r)
	}
}

func TestWriteText(t *testing.T) {
	var b strings.Builder
	if err := WriteText(&b, Rows(lan966x()), false); err != nil {
		t.Fatal(err)
	}
	const name = "testdata/lan966x.txt"
	if *update {
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), b.String()); diff != "" {
		t.Error(diff)
	}
	var coloured strings.Builder
	if err := WriteText(&coloured, Rows(lan966x()), true); err != nil {
		t.Fatal(err)
	}
	if plain := strings.NewReplacer(red, "", reset, "").Replace(coloured.String()); plain != b.String() || plain == coloured.String() {
		t.Error("colour changes more than the colour")
	}
}

func TestWriteTextOfNothing(t *testing.T) {
	var b strings.Builder
	if err := WriteText(&b, nil, false); err != nil || b.Len() > 0 {
		t.Errorf("%q, %v", b.String(), err)
	}
	if err := WriteText(&b, Rows(lan966x()[:1]), false); err != nil || !strings.Contains(b.String(), "No change is predicted here") {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestReading(t *testing.T) {
	rows := Rows(lan966x())
	if got := reading(rows); !strings.HasPrefix(got, "Costs were chosen to meet the fitted figures") {
		t.Errorf("got %q", got)
	}
	if got := reading(rows[1:3]); !strings.HasPrefix(got, "No cost was chosen to meet these figures.") {
		t.Errorf("got %q", got)
	}
	for f, want := range map[float64]string{0.0001: "0.0001", 0.5: "0.50", 1: "1.00", 97: "97", 97.04: "97", 947825: "9.5e+05"} {
		if got := factor(&f); got != want {
			t.Errorf("%v: %q, want %q", f, got, want)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("no space left")

func TestWriteTextPassesOnErrors(t *testing.T) {
	if err := WriteText(full{}, Rows(lan966x()), false); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}
