/** All scenes, and the test that plays them and compares what people see with the recorded text. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { K0S_RUN_SCENES } from './k0s-run-scenes.ts';
import { K0S_SCENES } from './k0s-scenes.ts';
import { K0S_WAIT_SCENES } from './k0s-wait-scenes.ts';
import { KUBEADM_SCENES } from './kubeadm-scenes.ts';
import { MACHINE_SCENES } from './machine-scenes.ts';
import { RANCHER_SCENES } from './rancher-scenes.ts';
import { Stage } from './stage.ts';

const SCENES = [
  ...K0S_SCENES.map((scene) => ({ folder: 'k0s', ...scene })),
  ...K0S_WAIT_SCENES.map((scene) => ({ folder: 'k0s', ...scene })),
  ...K0S_RUN_SCENES.map((scene) => ({ folder: 'k0s', ...scene })),
  ...RANCHER_SCENES.map((scene) => ({ folder: 'rancher', ...scene })),
  ...KUBEADM_SCENES.map((scene) => ({ folder: 'kubeadm', ...scene })),
  ...MACHINE_SCENES.map((scene) => ({ folder: 'cluster-api', ...scene })),
];
const RECORDED = join(import.meta.dirname, 'recorded');

/** Every fourth scene belongs to the first tier, and the other ones to the second tier. */
export const FIRST_TIER = SCENES.filter((_, index) => index % 4 === 0);
export const SECOND_TIER = SCENES.filter((_, index) => index % 4 !== 0);

export function testScenes(scenes: typeof SCENES): void {
  test.each(scenes)(
    'people see the recorded text: $folder, $name',
    async ({ folder, name, play }) => {
      const directory = await mkdtemp(join(tmpdir(), 'refit-scene-'));
      await using things = new AsyncDisposableStack();
      things.defer(async () => await rm(directory, { recursive: true }));
      const stage = things.use(await Stage.open(directory));
      await play(stage);
      const file = `${name.replaceAll(/[^a-z0-9]+/gi, '-')}.txt`;
      await expect(stage.text()).toMatchFileSnapshot(join(RECORDED, folder, file));
    },
  );
}
