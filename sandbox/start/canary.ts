/**
 * Shows waves and a health check. The rollout of a release that breaks the shop stops in its first wave. The engine
 * alone makes that decision.
 */
import type { UpgradePolicy } from '../../src/api/refit/upgrade-policy.ts';
import type { ShownPlan } from '../../src/cli/status/json-form.ts';
import { targetsOf } from '../../src/cli/status/sentences.ts';
import { counted, listed } from '../../src/util/phrases.ts';
import { ERROR_RATE } from './shop.ts';

/** The number of workers in each wave. All other workers are in the last wave. */
const WAVES = [2];
const MOST_NAMES = 8;

/** The deadlines are short, so that nobody must wait ten minutes until a node fails. */
export function canaryPolicy(shopUrl: string): UpgradePolicy {
  return {
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'canary' },
    spec: {
      waves: WAVES.map((count) => ({ count })),
      health: {
        metrics: [{ name: 'error-rate', url: shopUrl, query: ERROR_RATE, max: '0.05' }],
      },
      deadlines: { ready: '10s', restart: '30s' },
    },
  };
}

export const CANARY_LINES: readonly string[] = [
  `UpgradePolicy canary: ${WAVES[0]} workers are the first wave, all others the second one.`,
  'Its health check error-rate queries a server that imitates Prometheus:',
  'at most 0.05 of the calls between the pods of a shop may fail.',
  'With this release, calls between two nodes that both run it are lost.',
  '',
];

/** Returns the last lines: the wave that stopped, why each of its nodes failed, and the nodes that were not touched. */
export function canarySummary(view: ShownPlan): string[] {
  const workers = view.stages
    .filter(({ role }) => role === 'worker')
    .flatMap(({ targets }) => targets);
  const untouched = workers.filter(({ phase }) => phase === 'pending' || phase === 'skipped');
  const failed = targetsOf(view).filter(({ phase }) => phase === 'failed');
  const names = listed(
    untouched.map(({ name }) => name),
    MOST_NAMES,
  );
  const whichWave = waveOf(workers.length - untouched.length);
  return [
    ...failed.map(
      ({ name, failure }) =>
        `Wave ${whichWave} stopped at ${name}: ${failure ?? view.reason ?? 'no reason was given'}`,
    ),
    `${counted(untouched.length, 'node')} untouched${names === '' ? '' : `: ${names}`}.`,
  ];
}

/**
 * Returns the number of the wave, computed from the number of nodes that have begun. A node begins only after all nodes
 * of the waves before its own wave.
 */
function waveOf(begun: number): number {
  let members = 0;
  for (const [index, count] of WAVES.entries()) {
    members += count;
    if (begun <= members) return index + 1;
  }
  return WAVES.length + 1;
}
