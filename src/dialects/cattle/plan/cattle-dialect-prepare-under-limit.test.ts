/** Proves that a Plan whose `prepare` waits for another Plan takes no slot of a limit that the other Plan needs. */
import { expect, test } from 'vitest';
import {
  buildCattleScene,
  LIMITED,
  selecting,
} from '../../../../test/support/builders/cattle-scenes.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import type { KubeObject } from '../../../kube/resources.ts';
import { cattle } from './cattle-dialect.ts';
import { conditionOf } from './conditions.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';

const AGENTS = selecting('agents', 'a', {
  prepare: { image: 'img', args: ['prepare', 'servers'] },
});
const SERVERS = selecting('servers', 's');

function scene(policyOf: (plan: KubeObject) => object = () => LIMITED) {
  const built = buildCattleScene([AGENTS, SERVERS], ['a', 's'], { policyOf });
  const ask = (name: string, version: string): void =>
    built.api.change<CattlePlan>(cattlePlans, name, ({ spec: _spec, ...plan }) => ({
      ...(name === 'agents' ? AGENTS : SERVERS),
      ...plan,
      spec: { ...(name === 'agents' ? AGENTS : SERVERS).spec, version } as NonNullable<
        CattlePlan['spec']
      >,
    }));
  return { ...built, ask };
}

test('it starts after the other Plan', async () => {
  const { api, look, atWork, complete } = scene();
  const isWaiting = () =>
    conditionOf(api.read<CattlePlan>(cattlePlans, 'agents'), 'RefitWaits') !== undefined;
  await look();
  expect([atWork(), isWaiting()]).toEqual([['s'], true]);
  complete('s');
  await look();
  expect([atWork(), isWaiting()]).toEqual([['a'], false]);
});

test('that one may come later', async () => {
  const { api, look, atWork } = scene();
  api.remove(cattlePlans, 'servers');
  await look();
  api.put(cattlePlans, SERVERS);
  await look();
  expect(atWork()).toEqual(['s']);
});

test('it waits for the same version, though that one is complete with an earlier one', async () => {
  const { look, atWork, complete, ask } = scene();
  for (const name of ['s', 'a']) {
    await look();
    complete(name);
  }
  await look();
  ask('agents', 'v1.2.4');
  await look();
  expect(atWork()).toEqual([]);
  ask('servers', 'v1.2.4');
  await look();
  expect(atWork()).toEqual(['s']);
});

test.each<[string, (name: string) => object]>([
  ['it has no limit', (name) => (name === 'servers' ? LIMITED : {})],
  ['neither has one', () => ({})],
])('its Job waits on the node, as in the original: %s', async (_what, policyOf) => {
  const { look, atWork } = scene(({ metadata }) => policyOf(metadata.name));
  await look();
  expect(atWork()).toEqual(['a', 's']);
});

test('its Job was there before the limit: it takes no place then', async () => {
  let isLimited = false;
  const { look, atWork } = scene(({ metadata: { name } }) =>
    isLimited ? LIMITED : { paused: name === 'servers' },
  );
  await look();
  expect(atWork()).toEqual(['a']);
  isLimited = true;
  await look();
  expect(atWork()).toEqual(['a', 's']);
});

test('it is woken when that one is complete with another version, too', () => {
  const dialect = cattle({
    name: 'controller',
    namespace: 'system-upgrade',
    job: DEFAULT_JOB_SETTINGS,
  });
  const watched = dialect.watched.find(({ resource }) => resource === cattlePlans);
  const complete = (latestVersion: string): CattlePlan => {
    return {
      ...SERVERS,
      status: { latestVersion, conditions: [{ type: 'Complete', status: 'True' }] },
    };
  };
  const woken = (after: CattlePlan) => watched?.isRelevant(complete('v1'), after);
  expect([woken(complete('v1')), woken(complete('v2')), woken(SERVERS)]).toEqual([
    false,
    true,
    true,
  ]);
});
