package cli

import (
	"net/url"
	"testing"
)

func TestAStatusURLHasTheDatabase(t *testing.T) {
	t.Parallel()
	i := &instance{}
	if got := i.statusURL("sales", "1"); got != "" {
		t.Errorf("without an address: %q", got)
	}
	for base, want := range map[string]string{
		"http://127.0.0.1:6433":         "http://127.0.0.1:6433/api/2.0/pipelines/a%20b%2Fc/updates/1",
		"https://rwproxy.example/prod/": "https://rwproxy.example/prod/api/2.0/pipelines/a%20b%2Fc/updates/1",
	} {
		u, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		i.public.Store(u)
		if got := i.statusURL("a b/c", "1"); got != want {
			t.Errorf("%s: %q", base, got)
		}
	}
}
