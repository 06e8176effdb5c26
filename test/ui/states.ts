/** States of the dashboard for tests: any number of nodes in all phases, with steps over time. */
import type { DashboardState, NodeState, PagePlan } from '../../src/cli/dashboard/state.ts';

const PHASES = ['done', 'moving', 'failed', 'skipped', 'pending'] as const;
const T0 = Date.parse('2026-11-20T08:00:00Z');
const MINUTE = 60_000;

export function nodesNamed(count: number, nameOf = (index: number) => `w${index}`): NodeState[] {
  return Array.from({ length: count }, (_, index): NodeState => {
    const from = T0 + index * 1000;
    return {
      name: nameOf(index),
      role: 'worker',
      version: 'v1.36.3+k0s.0',
      phase: PHASES[index % PHASES.length] ?? 'pending',
      state: 'done',
      message: '',
      since: '2026-11-20T08:00:00Z',
      steps: [
        { word: 'download', from, to: from + MINUTE },
        { word: 'drain', from: from + MINUTE, to: from + 2 * MINUTE },
        { word: 'restart', from: from + 2 * MINUTE, to: from + 3 * MINUTE },
      ],
    };
  });
}

/**
 * Returns nodes of which half are in each of two waves, and a third are in each of two zones. The last third is in no
 * zone.
 */
export function nodesInWaves(count: number): NodeState[] {
  const zones = ['b2', 'b10', undefined];
  return nodesNamed(count).map((node, index) => {
    const wave = index < count / 2 ? 1 : 2;
    return { ...node, wave, zone: zones[index % zones.length] };
  });
}

export function stateWith(
  nodes: readonly NodeState[],
  plan: Partial<PagePlan> = {},
): DashboardState {
  return {
    at: '2026-11-20T08:10:00Z',
    notes: ['No leader for 5 min: no new node starts until one runs.'],
    missing: ['noderollouts is forbidden'],
    plans: [
      {
        key: 'autopilot//autopilot',
        title: 'Plan autopilot (2026-11-20)',
        phase: 'running',
        isOpen: true,
        versions: 'v1.36.3+k0s.0',
        done: 1,
        total: nodes.length,
        percent: 20,
        progress: ['20 %', 'about 3 min left'],
        started: '2026-11-20T08:00:00Z',
        wave: 'wave 1 of 2',
        chief: 'node w4 is not Ready (NodeNotReady, 40 s)',
        why: [
          { heading: 'waits', lines: ['node w4 is not Ready (NodeNotReady, 40 s)'] },
          { heading: 'ends', lines: ['when the node is Ready'] },
        ],
        held: ['w3 is held by ada: disk'],
        checks: [{ name: 'errors', state: 'Failing', message: '7 is above 5' }],
        nodes,
        history: [
          {
            id: 'a',
            started: '2026-11-19T08:00:00Z',
            version: 'v1.36.2',
            phase: 'failed',
            done: 3,
            total: 5,
            causes: ['w1: no space left'],
          },
        ],
        ...plan,
      },
    ],
  };
}
