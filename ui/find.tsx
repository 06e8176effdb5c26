/** The field that searches nodes, and the buttons that show only the nodes of some kinds. */
import type { RefObject } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import type { NodeState } from '../src/cli/dashboard/state.ts';
import { countsOf, FILTERS, type Filter, LONGEST_SEARCH, type Wanted } from './search.ts';

interface FindProps extends Wanted {
  readonly nodes: readonly NodeState[];
  /** How many nodes match; undefined if the viewer looks for nothing. */
  readonly found: number | undefined;
  readonly field: RefObject<HTMLInputElement | null>;
  readonly look: (wanted: Wanted) => void;
}

export function Find({ nodes, found, search, filters, field, look }: FindProps) {
  const counts = useMemo(() => countsOf(nodes), [nodes]);
  useSlash(field);
  const toggle = (filter: Filter): void => {
    const others = filters.filter((each) => each !== filter);
    look({ search, filters: others.length < filters.length ? others : [...filters, filter] });
  };
  return (
    <div class="find" role="search" aria-label="Find nodes">
      <input
        ref={field}
        type="search"
        aria-label="Search nodes by name, label or reason"
        aria-keyshortcuts="/"
        placeholder="Name, label or reason ( / )"
        maxLength={LONGEST_SEARCH}
        spellcheck={false}
        autocomplete="off"
        value={search}
        onInput={({ currentTarget: { value } }) => look({ search: value, filters })}
      />
      <div role="group" aria-label="Show only nodes that are">
        {FILTERS.map((filter) => (
          <button
            key={filter}
            type="button"
            aria-pressed={filters.includes(filter)}
            onClick={() => toggle(filter)}
          >
            {filter} {counts[filter]}
          </button>
        ))}
      </div>
      <span role="status">{found !== undefined && `${found} of ${nodes.length} nodes match.`}</span>
    </div>
  );
}

/** Moves the focus to the field if somebody types `/` outside of a field and outside of a question. */
function useSlash(field: RefObject<HTMLInputElement | null>): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
      const isElsewhere = event.target instanceof Element && event.target.closest(FIELDS) === null;
      if (!isElsewhere) return;
      event.preventDefault();
      field.current?.focus();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [field]);
}

const FIELDS = 'input, textarea, select, dialog';

interface NoMatchProps {
  readonly clear: () => void;
}

/** Says that no node matches, and offers to show all nodes again. */
export function NoMatch({ clear }: NoMatchProps) {
  return (
    <p class="none">
      No node matches.{' '}
      <button type="button" onClick={clear}>
        Clear the search
      </button>
    </p>
  );
}
