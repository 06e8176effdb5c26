/** Plays one scene of the table in one dialect. */
import { writeFile } from 'node:fs/promises';
import { expect } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { policyWith } from '../scenes/k0s-scene.ts';
import type { TableScene } from './scenes/scene.ts';
import { type DialectUnderTest, type OpenStage, World } from './world.ts';

/** The condition of an UpgradePolicy that names fields without effect on the plans that it covers. */
const NO_EFFECT = 'NoEffect';

function policyOf({ policy }: TableScene, dialect: DialectUnderTest) {
  return typeof policy === 'function' ? policy(dialect) : policy;
}

/** Plays that people are told which fields have no effect: by `refit validate`, and by the policy of the cluster. */
async function tellsNoEffect(world: World, scene: TableScene, why: string): Promise<void> {
  const { stage, dialect } = world;
  const spec = policyOf(scene, dialect) ?? {};
  const path = stage.path('policy.yaml');
  await writeFile(path, JSON.stringify(policyWith(spec)));
  expect(await stage.answerAlone('validate', path)).toContain(why);
  await world.build(spec);
  await dialect.begin(world);
  await world.until('the policy names what has no effect', async () => {
    const { items } = await stage.client.list(upgradePolicies);
    const conditions = items.flatMap(({ status }) => status?.conditions ?? []);
    return conditions.some(
      ({ type, status, message = '' }) =>
        type === NO_EFFECT && status === 'True' && message.includes(why),
    );
  });
}

export async function playScene(
  dialect: DialectUnderTest,
  scene: TableScene,
  openStage?: OpenStage,
): Promise<void> {
  await using world = await World.open(dialect, scene.setting, openStage);
  const { policyEffects } = dialect.module;
  const none = (scene.fields ?? []).flatMap((field) => {
    const effect = policyEffects[field];
    return effect.kind === 'none' ? [effect.why] : [];
  });
  const [why] = none;
  const instead = scene.instead?.[dialect.name];
  if (why !== undefined && !instead) return await tellsNoEffect(world, scene, why);
  await world.build(policyOf(scene, dialect));
  await scene.before?.(world);
  await dialect.begin(world);
  await (instead ?? scene.play)(world);
}
