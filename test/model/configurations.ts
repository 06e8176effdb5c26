/** Owns the configurations that are explored in every test run. */
import type { Configuration, NodeSpec } from './cluster.ts';
import { NOW } from './cluster.ts';
import type { Quality } from './host.ts';

export const V2 = 'v1.36.2+k0s.0';
export const V3 = 'v1.36.3+k0s.0';
const HOUR_MS = 3_600_000;

/** Names that begin with c are controllers; after a colon follows what the payload is worth there: `w2:dead`. */
export function configure(name: string, nodes: string, more: Partial<Configuration> = {}): Configuration {
  return {
    name,
    nodes: nodes.split(' ').map(nodeOf),
    versions: [V2],
    replacedBy: [],
    concurrent: 1,
    faults: 1,
    crashesEach: 0,
    times: [NOW],
    targetDeadlineMs: Infinity,
    mayDie: false,
    ...more,
  };
}

function nodeOf(text: string): NodeSpec {
  const [name = '', payload = 'good'] = text.split(':');
  return { name, role: name.startsWith('c') ? 'controller' : 'worker', payload: payload as Quality };
}

export const CONFIGURATIONS: readonly Configuration[] = [
  configure('1 controller, 2 workers', 'c1 w1 w2'),
  configure('1 controller, 2 workers, 2 at once', 'c1 w1 w2', { concurrent: 2 }),
  configure('2 controllers, 1 worker', 'c1 c2 w1'),
  configure('3 workers', 'w1 w2 w3'),
  configure('3 workers, 2 at once', 'w1 w2 w3', { concurrent: 2 }),
  configure('2 controllers, 2 faults', 'c1 c2', { faults: 2 }),
  configure('2 controllers, 2 commands', 'c1 c2', { versions: [V2, V3] }),
  configure('1 controller, 1 worker, 2 commands', 'c1 w1', { versions: [V2, V3] }),
  configure('1 worker, the plan is replaced', 'w1', { replacedBy: [V3] }),
  configure('1 worker, its payload never comes up, the plan is replaced', 'w1:dead', {
    replacedBy: [V3],
    faults: 0,
    times: [NOW, NOW + 3 * HOUR_MS],
    targetDeadlineMs: 2 * HOUR_MS,
  }),
  configure('payload cannot be executed', 'c1:garbage w1:garbage w2:garbage', { faults: 2 }),
  configure('payload never comes up on controllers', 'c1:dead c2:dead w1', { faults: 2 }),
  configure('payload never comes up on 1 of 3 workers, 2 at once', 'w1 w2:dead w3', { concurrent: 2 }),
  configure('payload comes up as another version', 'c1:impostor c2:impostor w1', { faults: 2 }),
  configure('deadline, nodes may stay off', 'w1 w2', {
    mayDie: true,
    times: [NOW, NOW + 3 * HOUR_MS],
    targetDeadlineMs: 2 * HOUR_MS,
  }),
];
