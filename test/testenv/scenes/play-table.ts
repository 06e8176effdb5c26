/** Plays the scenes of the table on a real API server, which shows that the API server in memory does not hide a mistake. */
import { afterAll, beforeAll, describe, test } from 'vitest';
import { playScene } from '../../dialects/play-scene.ts';
import { TABLE } from '../../dialects/scenes/table.ts';
import type { DialectUnderTest } from '../../dialects/world.ts';
import { RealCluster } from './real-cluster.ts';

export function playTableOnRealServer(dialect: DialectUnderTest): void {
  let cluster: RealCluster;

  beforeAll(async () => {
    cluster = await RealCluster.start();
  });

  afterAll(async () => await cluster[Symbol.asyncDispose]());

  describe(`${dialect.name} on a real API server`, () => {
    test.each(TABLE)('$name', async (scene) => {
      await playScene(dialect, scene, async (directory) => await cluster.openStage(directory));
    });
  });
}
