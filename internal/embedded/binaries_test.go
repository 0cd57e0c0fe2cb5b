package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// install makes a folder of programs that say they are PostgreSQL of this
// version.
func install(t *testing.T, version string) string {
	t.Helper()
	bin := filepath.Join(tempDir(t), "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "initdb"} {
		script := "#!/bin/sh\necho '" + name + " (PostgreSQL) " + version + "'\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

func TestTheNewestSupportedInstallationIsFoundFirst(t *testing.T) {
	t.Parallel()
	folders := []string{
		install(t, "15.3 (Debian 15.3-1)"), install(t, "19.1"), install(t, "13.20"), install(t, "17beta1"),
		install(t, "16.2"), filepath.Join(t.TempDir(), "missing"),
	}
	var majors []int
	for _, i := range installations(t.Context(), append(folders, folders[0])) {
		majors = append(majors, i.major)
	}
	if len(majors) != 3 || majors[0] != 17 || majors[1] != 16 || majors[2] != 15 {
		t.Errorf("majors = %v", majors)
	}
}

func TestAnExplicitFolderIsUsedOrRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	bin := install(t, "14.9")
	found, err := find(t.Context(), bin, 16)
	if err != nil || found.major != 14 || found.program("initdb") != filepath.Join(bin, "initdb") {
		t.Errorf("found %+v, %v", found, err)
	}
	for folder, want := range map[string]string{
		t.TempDir():           "no such file",
		install(t, "13.1"):    "PostgreSQL 13 is not supported, 14 to 18 are",
		install(t, "unknown"): "postgres --version printed",
	} {
		if _, err := find(t.Context(), folder, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %s", err, want)
		}
	}
	notPrograms := install(t, "15.1")
	if err := os.Chmod(filepath.Join(notPrograms, "initdb"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := find(t.Context(), notPrograms, 0); err == nil || !strings.Contains(err.Error(), "initdb is not a program") {
		t.Errorf("error = %v", err)
	}
}

func TestWithoutBinariesTheErrorSaysWhatToInstall(t *testing.T) {
	t.Parallel()
	_, err := choose(nil, 0)
	if !errors.Is(err, ErrNoBinaries) || !strings.Contains(err.Error(), "install PostgreSQL 14 to 18") ||
		!strings.Contains(err.Error(), "--upstream") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error = %v", err)
	}
}

func TestTheInstallationThatFitsTheDataIsPreferred(t *testing.T) {
	t.Parallel()
	found := []installation{{"/17", 17}, {"/15", 15}}
	for major, want := range map[int]string{0: "/17", 15: "/15", 16: "/17"} {
		if got, err := choose(found, major); err != nil || got.bin != want {
			t.Errorf("for data of %d: %+v, %v", major, got, err)
		}
	}
}

func TestInstalledPostgresIsFoundInTheUsualPlaces(t *testing.T) {
	t.Parallel()
	found, err := find(t.Context(), "", 0)
	if err != nil || found.major < oldestMajor || found.major > newestMajor {
		t.Errorf("found %+v, %v", found, err)
	}
}
