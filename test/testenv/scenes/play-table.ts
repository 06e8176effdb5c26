/** Plays scenes of the table on a real API server, which shows that the API server in memory does not hide a mistake. */
import { afterAll, beforeAll, describe, test } from 'vitest';
import { playScene } from '../../dialects/play-scene.ts';
import { TABLE } from '../../dialects/scenes/table.ts';
import type { DialectUnderTest } from '../../dialects/world.ts';
import { WHOLE } from '../../support/whole.ts';
import { RealCluster } from './real-cluster.ts';

/** The scenes in which an API server takes part most: each way to start, to stop, to repeat and to tell an upgrade. */
const NAMES: readonly string[] = [
  'all nodes are upgraded one at a time, and each of them once',
  'a held node is not started, and starts once it is released',
  'a paused policy lets no node start, and a policy that is not paused lets them start',
  'a paused plan starts no further node, and goes on once it is resumed',
  'a failed node is tried again with refit retry, and the plan goes on',
  'all nodes go back to the earlier version when people roll back',
  'nothing starts outside of the windows',
  'the second wave starts after its approval',
  'no node starts while a health check fails',
  'no node starts while another tool holds the Lease for disruptions',
  'a hook before the drain runs once for each node, also if the leader dies',
  'a node waits for the budget of its pods, and goes on once the budget allows the eviction',
  'the pods of a node are evicted before its upgrade, and the node is uncordoned afterwards',
  'no further node starts after a failure',
  'a node that does not run the new version after its upgrade has failed',
  'each node is upgraded once if the leader dies in the middle',
  'no node starts and none stays cordoned after the plan was deleted in the middle',
  'the other nodes are upgraded if a node is deleted before its turn',
  'a node that joins is upgraded, too, if the policy includes joining nodes',
  'people get one message when a plan starts, and one when it is done',
  'the history and the report name each node with its versions before and after',
  'the record of a plan that is done has the condition Completed, and counts all its nodes',
];

const CHOSEN = NAMES.map((name) => {
  const scene = TABLE.find((each) => each.name === name);
  if (!scene) throw new Error(`the table has no scene with the name: ${name}`);
  return scene;
});
/** All scenes of the table take half an hour on two busy cores. */
const SCENES = WHOLE ? TABLE : CHOSEN;

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
