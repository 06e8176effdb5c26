/** Shows that the program of the worker thread that reads texts of viewers needs no other file. */

import { once } from 'node:events';
import { builtinModules } from 'node:module';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { readerProgramText } from './texts-inside.ts';

test('the program of the reader is one text, which loads only modules of Node and answers', async () => {
  const code = await readerProgramText();
  const loaded = [...code.matchAll(/\brequire\((["'`])([^"'`]+)\1\)/g)].map(([, , name]) => name);
  const builtin = new Set(builtinModules.flatMap((name) => [name, `node:${name}`]));
  expect(loaded.filter((name) => name === undefined || !builtin.has(name))).toEqual([]);
  const workerData = { text: '', place: 'the text', mostPlans: 1, longestAnswer: 1000 };
  const worker = new Worker(code, { eval: true, workerData, execArgv: [], env: {} });
  const [answer] = (await once(worker, 'message')) as [string];
  expect(JSON.parse(answer)).toEqual({
    problems: [expect.stringMatching(/is empty or has only comments, expected/)],
  });
});
