package compare_test

import (
	"fmt"
	"log"
	"os"

	"napisim/reports/compare"
	"napisim/reports/result"
)

// variant makes runs with one goodput and one interrupt rate for each seed.
func variant(label string, goodput, interrupts []float64) result.Variant {
	v := result.Variant{Label: label}
	for i := range goodput {
		v.Runs = append(v.Runs, result.Run{Seed: uint64(i + 1), Metrics: map[string]result.Metric{
			"goodput":    {Value: goodput[i], Unit: "bit/s", Better: result.Higher},
			"interrupts": {Value: interrupts[i], Unit: "1/s", Better: result.Lower},
		}})
	}
	return v
}

func Example() {
	before := variant("before", []float64{529e6, 531e6, 528e6, 530e6, 527e6}, []float64{96, 104, 101, 99, 100})
	after := variant("after", []float64{397e6, 399e6, 395e6, 398e6, 396e6}, []float64{101, 99, 104, 96, 100})

	c, err := compare.Compare([]result.Variant{before, after}, compare.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := c.WriteText(os.Stdout, false); err != nil {
		log.Fatal(err)
	}
	// Output:
	// metric      before              after               delta           p
	// goodput     529.0 ± 2.0 Mbit/s  397.0 ± 2.0 Mbit/s  -24.95 ± 0.17%  p<0.001 n=5  - worse
	// interrupts  100.0 ± 3.6 /s      100.0 ± 3.6 /s      ~               p=1.000 n=5
	//
	// Means with 95 % intervals. Runs are paired by seed: paired t test.
	// Of 2 comparisons 0.1 expected below p=0.05 by chance. p is uncorrected; ~ and the marks follow p after Holm's correction for that many.
}

func ExampleEvaluate() {
	before := variant("before", []float64{529e6, 531e6, 528e6, 530e6, 527e6}, []float64{96, 104, 101, 99, 100})
	after := variant("after", []float64{397e6, 399e6, 395e6, 398e6, 396e6}, []float64{101, 99, 104, 96, 100})
	c, err := compare.Compare([]result.Variant{before, after}, compare.Options{})
	if err != nil {
		log.Fatal(err)
	}
	rule, err := compare.ParseRule("goodput worse 2%")
	if err != nil {
		log.Fatal(err)
	}
	gate, err := compare.Evaluate(c, []compare.Rule{rule})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("regression:", gate.Regression)
	for _, finding := range gate.Findings {
		fmt.Println(finding)
	}
	// Output:
	// regression: true
	// goodput of after changed by -24.95% (p=2e-10), against the rule "goodput worse 2%"
}
