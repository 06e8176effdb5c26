/** The output of `refit status` for one plan on a small cluster, as text. */
import type { Plan } from '../../../src/api/autopilot/plan.ts';
import type { AskControlPlane } from '../../../src/cli/status/inspection-sources.ts';
import type { LeaderView } from '../../../src/cli/status/load.ts';
import { render } from '../../../src/cli/status/render.ts';
import type { Node } from '../../../src/kube/resources.ts';
import { encodeReport } from '../../../src/signal/annotations.ts';
import type { ControlNode } from '../../../src/signal/names.ts';
import { later, MINUTE, T0 } from '../clock/times.ts';
import { buildControlNode, buildNode } from './nodes.ts';
import { buildPlan } from './plans.ts';
import { buildViewParts, lookAt, READY, recorded, statusOf } from './views.ts';

export const THEIRS = (names: string): string =>
  `  agents  k0s's own on ${names}: no roll-back, no resumed download, no proof that the node is Ready`;

const PIPE = {
  hasColours: false,
  size: () => ({ columns: Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY }),
};

const LED: LeaderView = { state: 'held', holder: 'a', since: later(0) };

export const [C1, C2, C3] = ['c1', 'c2', 'c3'].map((name) => buildControlNode(name)) as [
  ControlNode,
  ControlNode,
  ControlNode,
];

export const [W1, W2, W3] = ['w1', 'w2', 'w3'].map((name) =>
  buildNode(name, { labels: { pool: 'blue' } }),
) as [Node, Node, Node];

const PENDING = recorded({ c1: 'SignalPending', c2: 'SignalPending', c3: 'SignalPending' });

export const FIRST = recorded({ c1: 'SignalSent', c2: 'SignalPending', c3: 'SignalPending' });

export const WORKERS = recorded({ w1: 'SignalPending', w2: 'SignalPending', w3: 'SignalPending' });

export const running = (
  ...targets: [controllers: typeof PENDING, workers: typeof WORKERS, why?: string]
): Plan => buildPlan({}, statusOf('SchedulableWait', ...targets));

export const report = (more: object): Record<string, string> =>
  encodeReport({ created: later(1000), ...more });

export const at = (status: string): object => ({ status, timestamp: later(40_000) });

export interface Situation {
  readonly plans?: readonly Plan[];
  readonly controllers?: readonly ControlNode[];
  readonly workers?: readonly Node[];
  readonly leader?: LeaderView;
  readonly ask?: AskControlPlane;
}

/** Returns the output of `refit status` one minute after the beginning. */
export async function textOf(
  situation: Situation,
  form: 'text' | 'wide' = 'text',
  look = PIPE,
): Promise<string[]> {
  const {
    plans = [],
    controllers = [C1, C2, C3],
    workers = [W1, W2, W3],
    leader = LED,
    ask = READY,
  } = situation;
  const views = await lookAt(
    plans,
    controllers,
    workers,
    T0 + MINUTE,
    buildViewParts({ controlPlane: ask }),
  );
  return render({ leader, plans: views }, form, T0 + MINUTE, look)
    .trimEnd()
    .split('\n');
}
