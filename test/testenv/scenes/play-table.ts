/** Plays scenes of the table on a real API server, which shows that the API server in memory does not hide a mistake. */
import { afterAll, beforeAll, describe, test } from 'vitest';
import { playScene } from '../../dialects/play-scene.ts';
import { TABLE } from '../../dialects/scenes/table.ts';
import type { DialectUnderTest } from '../../dialects/world.ts';
import { RealCluster } from './real-cluster.ts';

/** The scenes in which an API server takes part most: each way to start, to stop and to repeat an upgrade. */
const NAMES: readonly string[] = [
  'all nodes are upgraded one at a time, and each of them once',
];

const SCENES = NAMES.map((name) => {
  const scene = TABLE.find((each) => each.name === name);
  if (!scene) throw new Error(`the table has no scene with the name: ${name}`);
  return scene;
});

export function playTableOnRealServer(dialect: DialectUnderTest): void {
  let cluster: RealCluster;

  beforeAll(async () => {
    cluster = await RealCluster.start();
  });

  afterAll(async () => await cluster[Symbol.asyncDispose]());

  describe(`${dialect.name} on a real API server`, () => {
    test.each(SCENES)('$name', async (scene) => {
      await playScene(dialect, scene, async (directory) => await cluster.openStage(directory));
    });
  });
}
