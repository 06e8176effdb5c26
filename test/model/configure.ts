/** Builds the small cluster to explore from a short description. */
import type { Configuration, NodeSpec } from './cluster.ts';
import { NOW } from './cluster.ts';
import type { Quality } from './host.ts';

export const V2 = 'v1.36.2+k0s.0';
export const V3 = 'v1.36.3+k0s.0';
/** Another build of the version that runs at first. The kubelets of both builds report the same version. */
export const OTHER_BUILD = 'v1.36.1+k0s.2';

/**
 * Names that begin with c are controllers; all other names are workers. After a name, a colon precedes the quality of
 * the payload (`w2:dead`), and an at sign precedes the wave (`w2@1`). At the end, an exclamation mark means that
 * somebody else keeps the node cordoned, a circumflex means that somebody holds the node (`w2@1^`), and an equals sign
 * means that the policy pins the node. A plus sign means that the node joins only later.
 */
export function configure(
  name: string,
  nodes: string,
  more: Partial<Configuration> = {},
): Configuration {
  return {
    name,
    nodes: nodes.split(' ').map(nodeOf),
    versions: [V2],
    replacedBy: [],
    wayBack: 'never',
    startsUpgraded: false,
    startsAtWorkers: false,
    takenOver: false,
    leaders: 'any',
    concurrent: 1,
    faults: 1,
    crashesEach: 0,
    cordoner: 'leader',
    controls: [],
    othersCordon: false,
    times: [NOW],
    targetDeadlineMs: Infinity,
    fetchesAhead: false,
    maxFailures: 0,
    rules: {},
    theirs: 'off',
    ownAgent: 'unknown',
    power: 'returns',
    ...more,
  };
}

function nodeOf(text: string): NodeSpec {
  const [words = '', wave] = text.replace(/[!^=+]$/, '').split('@');
  const [name = '', payload = 'good'] = words.split(':');
  return {
    name,
    role: name.startsWith('c') ? 'controller' : 'worker',
    payload: payload as Quality,
    isClosed: text.endsWith('!'),
    isHeld: text.endsWith('^'),
    isPinned: text.endsWith('='),
    ...(text.endsWith('+') && { isLate: true }),
    wave,
  };
}
