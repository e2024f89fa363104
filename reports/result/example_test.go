package result_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"napisim/reports/result"
)

func ExampleRead() {
	_, err := result.Read(strings.NewReader(`{"schema": "napisim.result/9"}`), "base.json")
	fmt.Println(err)
	// Output:
	// base.json: schema is "napisim.result/9", but this napisim reads "napisim.result/1": write the result again with this version
}

// The pooled 99th percentile of two runs is not the mean of their percentiles.
func ExampleMerge() {
	run := func(nanoseconds ...int64) result.Histogram {
		recorder := hdrhistogram.New(1, 10e9, 3)
		for _, v := range nanoseconds {
			if err := recorder.RecordValue(v); err != nil {
				log.Fatal(err)
			}
		}
		h, err := result.NewHistogram("s", 1e-9, recorder)
		if err != nil {
			log.Fatal(err)
		}
		return h
	}
	quiet, busy := run(100, 100, 100, 100, 100, 100), run(900, 900)
	pooled, err := result.Merge(quiet, busy)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d values, mean %.0f ns, p50 %.0f ns, p90 %.0f ns\n",
		pooled.Count, pooled.Mean*1e9, pooled.P50*1e9, pooled.P90*1e9)
	// Output:
	// 8 values, mean 300 ns, p50 100 ns, p90 900 ns
}

func ExampleSummarize() {
	// Goodput in Mbit/s of five seeds.
	s := result.Summarize([]float64{527, 528, 529, 530, 531})
	fmt.Printf("%.0f ± %.2f over %d seeds\n", s.Mean, s.Half, s.N)
	// Output:
	// 529 ± 1.96 over 5 seeds
}
