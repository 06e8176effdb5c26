/**
 * One promise, four dialects: each scene of the table is played in each dialect. A scene observes objects and hosts, and
 * what people are told.
 */
import { describe, test } from 'vitest';
import { ALL_DIALECTS } from './clusters/all.ts';
import { playScene } from './play-scene.ts';
import { TABLE } from './scenes/table.ts';

describe.each(ALL_DIALECTS)('$name', (dialect) => {
  test.each(TABLE)('$name', async (scene) => await playScene(dialect, scene));
});
