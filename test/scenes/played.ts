/** All scenes, and the test that plays them and compares what people see with the recorded text. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { K0S_CAUSE_SCENES } from './k0s-cause-scenes.ts';
import { K0S_RUN_SCENES } from './k0s-run-scenes.ts';
import { K0S_SCENES } from './k0s-scenes.ts';
import { K0S_TRUTH_SCENES } from './k0s-truth-scenes.ts';
import { K0S_WAIT_SCENES } from './k0s-wait-scenes.ts';
import { KUBEADM_SCENES } from './kubeadm-scenes.ts';
import { MACHINE_SCENES } from './machine-scenes.ts';
import { OWNER_SCENES } from './owner-scenes.ts';
import { RANCHER_RUN_SCENES } from './rancher-run-scenes.ts';
import { RANCHER_SCENES } from './rancher-scenes.ts';
import { RANCHER_TRUTH_SCENES } from './rancher-truth-scenes.ts';
import { RECORDED_SCENES } from './recorded-k0s-scenes.ts';
import { Stage } from './stage.ts';

const SCENES = [
  ...K0S_SCENES.map((scene) => ({ folder: 'k0s', ...scene })),
  ...K0S_WAIT_SCENES.map((scene) => ({ folder: 'k0s', ...scene })),
  ...K0S_RUN_SCENES.map((scene) => ({ folder: 'k0s', ...scene })),
  ...RECORDED_SCENES.map((scene) => ({ folder: 'recorded-k0s', ...scene })),
  ...RANCHER_SCENES.map((scene) => ({ folder: 'rancher', ...scene })),
  ...RANCHER_RUN_SCENES.map((scene) => ({ folder: 'rancher', ...scene })),
  ...KUBEADM_SCENES.map((scene) => ({ folder: 'kubeadm', ...scene })),
  ...[...MACHINE_SCENES, ...OWNER_SCENES].map((scene) => ({ folder: 'cluster-api', ...scene })),
  ...K0S_TRUTH_SCENES.map((scene) => ({ folder: 'k0s', ...scene })),
  ...RANCHER_TRUTH_SCENES.map((scene) => ({ folder: 'rancher', ...scene })),
  ...K0S_CAUSE_SCENES.map((scene) => ({ folder: 'k0s', ...scene })),
];
export const RECORDED = join(import.meta.dirname, 'recorded');

/** Every sixth scene belongs to the first tier, and the other ones to the second tier. */
export const FIRST_TIER = SCENES.filter((_, index) => index % 6 === 0);
export const SECOND_TIER = SCENES.filter((_, index) => index % 6 !== 0);

/** Returns the path of the recorded text of a scene, below RECORDED. */
export function fileOf({ folder, name }: Pick<(typeof SCENES)[number], 'folder' | 'name'>): string {
  return join(folder, `${name.replaceAll(/[^a-z0-9]+/gi, '-')}.txt`);
}

export function testScenes(scenes: typeof SCENES): void {
  test.each(scenes)(
    'people see the recorded text: $folder, $name',
    async ({ folder, name, play }) => {
      const directory = await mkdtemp(join(tmpdir(), 'refit-scene-'));
      await using things = new AsyncDisposableStack();
      things.defer(async () => await rm(directory, { recursive: true }));
      const stage = things.use(await Stage.open(directory));
      await play(stage);
      const file = join(RECORDED, fileOf({ folder, name }));
      await expect(stage.text()).toMatchFileSnapshot(file);
    },
  );
}
