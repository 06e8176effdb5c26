/**
 * Keeps what the viewer looks at in the fragment of the address, so that a link restores it and the browser can go back.
 * Everybody can write a link, so its values are only compared with known values or shown as text.
 */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { PagePlan } from '../src/cli/dashboard/state.ts';
import { ZOOMS, type Zoom } from './bars.tsx';
import { GROUPINGS, type Grouping } from './groups.ts';
import { FILTERS, type Filter, LONGEST_SEARCH, type Wanted } from './search.ts';

/** What the viewer looks at. A link has only the members that the viewer has changed. */
export interface View extends Wanted {
  /** The name or the key of a plan. The plan may not exist. */
  readonly plan: string | undefined;
  /** The name of a node, whose details are open. The node may not exist. */
  readonly node: string | undefined;
  /** The name of an earlier run, which is open in place of a node. The run may not exist. */
  readonly run: string | undefined;
  readonly grouping: Grouping | undefined;
  /** The part of the time that the bars show; undefined for all of it. */
  readonly zoom: Zoom | undefined;
}

/** Returns the view of a fragment. Unknown values are left out. */
export function viewIn(fragment: string): View {
  const values = new URLSearchParams(fragment.replace(/^#/, ''));
  const shown = new Set(values.getAll('show'));
  const group = values.get('group');
  const time = values.get('time');
  return {
    plan: values.get('plan') ?? undefined,
    node: values.get('node') ?? undefined,
    run: values.get('run') ?? undefined,
    grouping: GROUPINGS.find((each) => each === group),
    zoom: ZOOMS.find((each) => each === time),
    filters: FILTERS.filter((filter: Filter) => shown.has(filter)),
    search: (values.get('q') ?? '').replaceAll(/\s+/g, ' ').slice(0, LONGEST_SEARCH),
  };
}

/** Returns the fragment of a view, with `#`; empty if the viewer has changed nothing. */
export function fragmentOf({ plan, node, run, grouping, zoom, filters, search }: View): string {
  const values = new URLSearchParams();
  if (plan !== undefined) values.set('plan', plan);
  if (node !== undefined) values.set('node', node);
  if (run !== undefined) values.set('run', run);
  if (grouping !== undefined) values.set('group', grouping);
  if (zoom !== undefined) values.set('time', zoom);
  for (const filter of filters) values.append('show', filter);
  if (search.trim() !== '') values.set('q', search);
  const text = values.toString();
  return text === '' ? '' : `#${text}`;
}

/** Returns the text by which a link names the plan: its name, or its key if another plan has the same name. */
export function linkNameOf({ key }: PagePlan, plans: readonly PagePlan[]): string {
  const name = nameIn(key);
  return plans.filter((plan) => nameIn(plan.key) === name).length === 1 ? name : key;
}

/** Returns the plan that a link names; undefined if there is no such plan. */
export function planNamed(
  text: string | undefined,
  plans: readonly PagePlan[],
): PagePlan | undefined {
  return (
    plans.find(({ key }) => key === text) ?? plans.find((plan) => linkNameOf(plan, plans) === text)
  );
}

function nameIn(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1);
}

/** Milliseconds after the last key of a search until the address has it. Browsers limit how often an address may change. */
const TYPING_MS = 300;

export interface ViewState {
  readonly view: View;
  /** Shows something else, and adds it to the history of the browser. */
  readonly go: (change: Partial<View>) => void;
  /** Forgets the plan that does not exist, and what is open in it. The address stays the same. */
  readonly forgetPlan: () => void;
}

export function useView(): ViewState {
  const [view, setView] = useState(() => viewIn(location.hash));
  const latest = useRef(view);
  latest.current = view;
  const address = useMemo(createAddress, []);
  useEffect(() => {
    const onPop = (): void => {
      address.drop();
      setView(viewIn(location.hash));
    };
    addEventListener('popstate', onPop);
    return () => {
      address.flush();
      removeEventListener('popstate', onPop);
    };
  }, [address]);
  const set = (next: View): void => {
    latest.current = next;
    setView(next);
  };
  return {
    view,
    go(change) {
      const before = latest.current;
      const next = { ...before, ...change };
      set(next);
      const isTyped = fragmentOf({ ...next, search: before.search }) === fragmentOf(before);
      if (isTyped) address.type(next);
      else address.push(next);
    },
    forgetPlan: () => set({ ...latest.current, plan: undefined, node: undefined, run: undefined }),
  };
}

/** Writes views into the address of the page. */
function createAddress() {
  let typed: View | undefined;
  let timer: number | undefined;
  const drop = (): void => {
    clearTimeout(timer);
    typed = undefined;
  };
  /** Writes the search that was typed last. Only the beginning and the end of a search are steps of the history. */
  const flush = (): void => {
    const view = typed;
    drop();
    if (view === undefined) return;
    const isStep = viewIn(location.hash).search === '' || view.search.trim() === '';
    write(view, isStep ? 'pushState' : 'replaceState');
  };
  return {
    drop,
    flush,
    type(view: View): void {
      clearTimeout(timer);
      typed = view;
      timer = setTimeout(flush, TYPING_MS);
    },
    push(view: View): void {
      flush();
      write(view, 'pushState');
    },
  };
}

function write(view: View, how: 'pushState' | 'replaceState'): void {
  const fragment = fragmentOf(view);
  if (fragment === location.hash) return;
  try {
    history[how](null, '', `${location.pathname}${location.search}${fragment}`);
  } catch {
    // Some browsers refuse to change the address of a file, or to change an address too often. The page works without it.
  }
}
