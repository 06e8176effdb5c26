/** Shows one node in a drawer: its versions, its steps over time, why it waits or failed, and what to do. */
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { NodeState, PagePlan, Said } from '../src/cli/dashboard/state.ts';
import { NodeActions } from './actions.tsx';
import { Axis, Bar, Legend, spanOf } from './bars.tsx';
import { Sentences } from './sentences.tsx';
import { durationOf, Time } from './times.tsx';

interface NodePanelProps {
  readonly plan: PagePlan;
  readonly name: string;
  /** The list of labels to which the node refers. */
  readonly labels: readonly string[];
  /** False in a report, which has no server to ask. */
  readonly isServed: boolean;
  readonly allowsActions: boolean;
  readonly close: () => void;
}

export function NodePanel({ plan, name, ...props }: NodePanelProps) {
  const node = plan.nodes.find((each) => each.name === name);
  return node === undefined ? null : <Drawer plan={plan} node={node} {...props} />;
}

interface DrawerProps extends Omit<NodePanelProps, 'name'> {
  readonly node: NodeState;
}

function Drawer({ plan, node, labels, isServed, allowsActions, close }: DrawerProps) {
  const box = useRef<HTMLElement>(null);
  const said = useSaid(plan, node.name, isServed);
  useFocusInside(box);
  useEscape(close);
  return (
    <aside ref={box} tabIndex={-1} aria-labelledby="node" class="drawer">
      <div class="title">
        <h2 id="node">{node.name}</h2>
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
      <p>
        {node.role}: {node.state} since <Time at={node.since} />
        {node.message === '' ? '' : `: ${node.message}`}
      </p>
      {allowsActions && <NodeActions plan={plan} node={node} />}
      <dl>
        <Fact heading="before" text={node.from ?? 'not known'} />
        <Fact heading="after" text={node.version} />
        {node.wave !== undefined && <Fact heading="wave" text={String(node.wave)} />}
        {node.zone !== undefined && <Fact heading="zone" text={node.zone} />}
      </dl>
      <Steps node={node} />
      <Sentences said={node.why ?? said} />
      {node.labels !== undefined && (
        <details>
          <summary>Labels</summary>
          <ul>
            {node.labels.map((place) => (
              <li key={place}>{labels[place]}</li>
            ))}
          </ul>
        </details>
      )}
    </aside>
  );
}

function Fact({ heading, text }: { readonly heading: string; readonly text: string }) {
  return (
    <div class="said">
      <dt>{heading}</dt>
      <dd>{text}</dd>
    </div>
  );
}

function Steps({ node }: { readonly node: NodeState }) {
  if (node.steps.length === 0) return null;
  const span = spanOf([node]);
  return (
    <>
      <div class="chart one">
        <Legend nodes={[node]} />
        <Axis span={span} />
        <Bar node={node} span={span} />
      </div>
      <ol>
        {node.steps.map(({ word, from, to }) => (
          <li key={from}>
            {word}: {durationOf(to - from)}, from <Time at={from} /> to <Time at={to} />
          </li>
        ))}
      </ol>
    </>
  );
}

/** Asks the server to explain the node, again after each change of the plan. */
function useSaid(plan: PagePlan, name: string, isServed: boolean): readonly Said[] {
  const [said, setSaid] = useState<readonly Said[]>([]);
  useEffect(() => {
    if (!isServed) return undefined;
    let isLatest = true;
    const query = new URLSearchParams({ plan: plan.key, node: name });
    void fetch(`api/why?${query}`)
      .then(async (answer) => (await answer.json()) as Said[])
      .catch(() => [])
      .then((lines) => isLatest && setSaid(lines));
    // An answer about an earlier state must not replace the answer about the present state.
    return () => {
      isLatest = false;
    };
  }, [isServed, plan, name]);
  return said;
}

/** On a screen that is not wider than this, the drawer covers the page. The style sheet has the same width. */
const NARROW = '(max-width: 64rem)';

/**
 * Moves the focus into the drawer, and back to the element that opened it when the drawer closes. While the drawer
 * covers the page, the keyboard and screen readers cannot reach the page behind it.
 */
function useFocusInside(box: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    const drawer = box.current;
    const before = document.activeElement;
    const narrow = matchMedia(NARROW);
    const behind = [...document.querySelectorAll<HTMLElement>('header, main')];
    const cover = (isCovered: boolean): void => {
      for (const element of behind) element.inert = isCovered;
    };
    const onWidth = (): void => cover(narrow.matches);
    narrow.addEventListener('change', onWidth);
    drawer?.focus();
    onWidth();
    return () => {
      // The focus is on the body if the browser has already removed the element that had it.
      const { activeElement: focused, body } = document;
      const hadFocus = focused === body || drawer?.contains(focused) === true;
      narrow.removeEventListener('change', onWidth);
      cover(false);
      if (!hadFocus) return;
      const isOpener = before instanceof HTMLElement && before !== document.body;
      // A drawer that a link has opened gives the focus to the list of nodes.
      const next = isOpener && before.isConnected ? before : document.querySelector('.lanes');
      if (next instanceof HTMLElement) next.focus();
    };
  }, [box]);
}

/** Closes the drawer with the Escape key. In a question or in a field, the key has another meaning. */
function useEscape(close: () => void): void {
  const latest = useRef(close);
  latest.current = close;
  useEffect(() => {
    const onKey = ({ key, target }: KeyboardEvent): void => {
      const isElsewhere = target instanceof Element && target.closest(OTHERS) === null;
      if (key === 'Escape' && isElsewhere) latest.current();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
}

const OTHERS = 'dialog, input, select, textarea';
