package discover_test

import (
	"os"
	"testing"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/discover"
)

func everything() discover.Options { return discover.Options{Pattern: "*.db", Recursive: true} }

func TestNewDatabasesAreFound(t *testing.T) {
	w := follow(t, everything())
	w.write("a.db", head)
	w.expect("a.db")
	w.write("deep/er/b.db", head)
	w.expect("a.db", "deep/er/b.db")
	w.write("empty.db", "")
	w.write("text.db", "not yet a database, but soon")
	w.write("c.db", head)
	w.expect("a.db", "c.db", "deep/er/b.db")
	w.write("empty.db", head)
	w.write("text.db", head)
	w.expect("a.db", "c.db", "deep/er/b.db", "empty.db", "text.db")
}

func TestADatabaseThatIsGoneIsLetGoOnceAndMayComeBack(t *testing.T) {
	w := follow(t, everything())
	w.write("a.db", head)
	w.write("b.db", head)
	w.expect("a.db", "b.db")
	w.try(os.Remove(w.path("a.db")))
	w.expect("b.db")
	w.write("a.db", head) // it is still in use by whoever was told of it
	w.write("c.db", head)
	w.expect("b.db", "c.db")
	w.forget()
	w.expect("a.db", "b.db", "c.db")
}

func TestADatabaseThatIsReplacedStays(t *testing.T) {
	w := follow(t, everything())
	w.write("a.db", head)
	w.expect("a.db")
	w.write("new.tmp", head)
	w.try(os.Rename(w.path("new.tmp"), w.path("a.db")))
	w.write("b.db", head)
	w.expect("a.db", "b.db")
}

func TestDirectoriesComeAndGo(t *testing.T) {
	w := follow(t, everything())
	w.write("one/two/a.db", head)
	w.write("one/b.db", head)
	w.expect("one/b.db", "one/two/a.db")
	w.try(os.Rename(w.path("one"), w.path("uno")))
	w.expect("uno/b.db", "uno/two/a.db")
	w.write("uno/c.db", head)
	w.expect("uno/b.db", "uno/c.db", "uno/two/a.db")
	w.try(os.RemoveAll(w.path("uno")))
	w.expect()
	w.forget()
	w.write("uno/two/d.db", head)
	w.expect("uno/two/d.db")
}

func TestADirectoryInThePlaceOfADatabase(t *testing.T) {
	w := follow(t, everything())
	w.write("a.db", head)
	w.expect("a.db")
	w.try(os.Remove(w.path("a.db")))
	w.write("a.db/b.db", head)
	w.expect("a.db/b.db")
	w.try(os.RemoveAll(w.path("a.db")))
	w.expect()
	w.forget()
	w.write("a.db", head)
	w.expect("a.db")
}

func TestTheDirectoryItselfMayComeLater(t *testing.T) {
	w := follow(t, everything())
	w.write("a.db", head)
	w.expect("a.db")
	w.try(os.RemoveAll(w.root))
	w.expect()
	w.forget()
	w.write("deep/b.db", head)
	w.expect("deep/b.db")
}

func TestSubdirectoriesAreLeftAloneUnlessAskedFor(t *testing.T) {
	w := follow(t, discover.Options{Pattern: "*.db"})
	w.write("deep/a.db", head)
	w.write("b.db", head)
	w.expect("b.db")
	w.write("deep/c.db", head)
	w.write("d.db", head)
	w.expect("b.db", "d.db")
}
