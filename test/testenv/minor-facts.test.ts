/** Tests that the sources of Kubernetes still give the facts of the usual minor version. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { chosenRelease } from '../../tools/controlplane/releases.ts';
import { readSources } from '../../tools/facts/read.ts';
import { pathOf, render } from '../../tools/facts/render.ts';
import { ROOT } from '../repo/tree.ts';

const BUILD_MS = 30 * 60_000;
// The minor version of `--kubernetes` may be older than all facts, so this is always the usual one.
const minor = Number(chosenRelease({}).kubernetes.split('.')[1]);

test(
  'the generator gives the facts of the usual minor version that the repository has',
  async () => {
    const options = {
      environment: process.env,
      log: () => undefined,
      now: () => performance.now(),
    };
    const text = render(minor, await readSources(minor, options));
    expect(text).toBe(readFileSync(`${ROOT}${pathOf(minor)}`, 'utf8'));
  },
  BUILD_MS,
);
