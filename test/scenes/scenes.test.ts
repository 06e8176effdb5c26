/** Plays each scene, and compares what people see with the recorded text. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { K0S_SCENES } from './k0s-scenes.ts';
import { Stage } from './stage.ts';

test.each(K0S_SCENES)('people see the recorded text: $name', async ({ name, play }) => {
  const directory = await mkdtemp(join(tmpdir(), 'refit-scene-'));
  await using things = new AsyncDisposableStack();
  things.defer(async () => await rm(directory, { recursive: true }));
  const stage = things.use(await Stage.open(directory));
  await play(stage);
  const file = `recorded/k0s/${name.replaceAll(/[^a-z0-9]+/gi, '-')}.txt`;
  await expect(stage.text()).toMatchFileSnapshot(file);
});
