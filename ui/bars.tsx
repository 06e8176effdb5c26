/** Draws the steps of nodes on a common axis of time: bars, the axis itself, and the legend of the shades. */
import type { NodeState } from '../src/cli/dashboard/state.ts';
import { localText } from './times.tsx';

export interface Span {
  readonly from: number;
  readonly ms: number;
}

/** Returns the time from the first step to the end of the last step. */
export function spanOf(nodes: readonly NodeState[]): Span {
  let from = Number.POSITIVE_INFINITY;
  let to = 0;
  for (const { steps } of nodes) {
    for (const step of steps) {
      from = Math.min(from, step.from);
      to = Math.max(to, step.to);
    }
  }
  return { from, ms: Math.max(1, to - from) };
}

/** The last part of the time that the bars show on the whole width. */
export const ZOOMS = ['10m', '1h', '6h'] as const;
export type Zoom = (typeof ZOOMS)[number];

const MINUTE = 60_000;
const ZOOM_MS: Readonly<Record<Zoom, number>> = {
  '10m': 10 * MINUTE,
  '1h': 60 * MINUTE,
  '6h': 360 * MINUTE,
};
const ZOOM_WORDS: Readonly<Record<Zoom, string>> = {
  '10m': 'last 10 minutes',
  '1h': 'last hour',
  '6h': 'last 6 hours',
};

/** Returns the end of the span, as far as the zoom shows it. */
export function zoomed({ from, ms }: Span, zoom: Zoom | undefined): Span {
  const width = zoom === undefined ? ms : Math.min(ms, ZOOM_MS[zoom]);
  return { from: from + ms - width, ms: width };
}

interface ZoomChoiceProps {
  readonly span: Span;
  readonly zoom: Zoom | undefined;
  readonly choose: (zoom: Zoom | undefined) => void;
}

/** Lets people choose which time the bars show, if there is a choice. */
export function ZoomChoice({ span, zoom, choose }: ZoomChoiceProps) {
  const shorter = ZOOMS.filter((each) => ZOOM_MS[each] < span.ms);
  if (shorter.length === 0) return null;
  return (
    <label class="grouping zoom">
      Show{' '}
      <select
        value={shorter.find((each) => each === zoom) ?? ''}
        onChange={({ currentTarget: { value } }) => choose(ZOOMS.find((each) => each === value))}
      >
        <option value="">the whole time</option>
        {shorter.map((each) => (
          <option key={each} value={each}>
            {ZOOM_WORDS[each]}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Bar({ node, span }: { readonly node: NodeState; readonly span: Span }) {
  return (
    <span class="bar" aria-hidden="true">
      {node.steps.map(({ word, from, to }) => {
        // A zoom shows the end of a step that began before it.
        const begin = Math.max(from, span.from);
        if (to < begin) return null;
        return (
          <span
            key={from}
            title={word}
            class={`step ${classOf(word)}`}
            style={{
              left: `${(100 * (begin - span.from)) / span.ms}%`,
              width: `${Math.max(0.5, (100 * (to - begin)) / span.ms)}%`,
            }}
          />
        );
      })}
    </span>
  );
}

function classOf(word: string): string {
  return word.replaceAll(' ', '-');
}

/** The order in which nodes take the steps. */
const WORDS = [
  'download',
  'drain',
  'apply',
  'restart',
  'roll back',
  'uncordon',
  'verify',
  'at work',
  'wait',
];

/** Names the shades that the bars of these nodes have. */
export function Legend({ nodes }: { readonly nodes: readonly NodeState[] }) {
  const used = new Set(nodes.flatMap(({ steps }) => steps.map(({ word }) => word)));
  if (used.size === 0) return null;
  return (
    <ul class="legend" aria-label="Steps">
      {WORDS.filter((word) => used.has(word)).map((word) => (
        <li key={word}>
          <span class={`swatch step ${classOf(word)}`} aria-hidden="true" />
          {word}
        </li>
      ))}
    </ul>
  );
}

const QUARTERS = [0, 1, 2, 3, 4];
const QUARTERS_OF_SECONDS_MS = 4000;
const DAY = 86_400_000;

/** Shows times in the zone of the viewer, at the same horizontal positions as in the bars below the axis. */
export function Axis({ span }: { readonly span: Span }) {
  if (!Number.isFinite(span.from)) return null;
  return (
    <div class="axis" aria-hidden="true">
      <span class="ticks">
        {ticksOf(span).map(({ quarter, label }) => (
          <span key={quarter} class={`tick at-${quarter}`} style={{ left: `${25 * quarter}%` }}>
            {label}
          </span>
        ))}
      </span>
    </div>
  );
}

/**
 * Returns the labels of the axis. A label that equals the previous label is left out. This happens if the axis covers
 * only a few milliseconds.
 */
function ticksOf({ from, ms }: Span): { readonly quarter: number; readonly label: string }[] {
  const ticks = QUARTERS.map((quarter) => ({
    quarter,
    label: timeAt(from + (ms * quarter) / 4, ms),
  }));
  return ticks.filter(({ label }, index) => label !== ticks[index - 1]?.label);
}

function timeAt(at: number, ms: number): string {
  const text = localText(at);
  if (ms > DAY) return text.slice(5, 16).replace('T', ' ');
  return ms < QUARTERS_OF_SECONDS_MS ? text.slice(11, 23) : text.slice(11, 19);
}
