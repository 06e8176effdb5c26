/** Defines the test projects: which files each one runs, how they are isolated, and which run side by side. */
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { CountReporter } from './tools/count-reporter.ts';

/** Projects of one turn run side by side. `workers` is how many of their files run at once. */
const TURNS = {
  /** These compute, and some wait now and then: one worker more than a small machine has cores. */
  computing: { order: 0, workers: 3 },
  /** These mostly wait, for other processes and for real clocks. */
  waiting: { order: 1, workers: 6 },
  /** These look at what the others left behind. */
  last: { order: 2, workers: 1 },
} as const;

const project = (
  name: string,
  turn: keyof typeof TURNS,
  include: string[],
  more: Record<string, unknown> = {},
) => ({
  test: {
    name,
    include,
    // For a busy machine: longer than the longest wait in a test, which then says what it waited for.
    testTimeout: 180_000,
    // A file may wait until what it needs is built for the first time.
    hookTimeout: 1_200_000,
    // Of each wait for a value, as long as nothing else is said.
    expect: { poll: { timeout: 60_000 } },
    maxWorkers: TURNS[turn].workers,
    sequence: { groupOrder: TURNS[turn].order },
    // Tests start stand-ins hundreds of times: with the first, Node compiles their files once. With the other, short
    // commands in Go, such as kubectl, end before they collect garbage, which takes a quarter of their CPU.
    env: {
      NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/compiled'),
      GOGC: '400',
    },
    // Young objects get 64 MiB instead of 16: most of what a test makes is garbage soon, and is then never copied.
    execArgv: ['--max-semi-space-size=64'],
    ...more,
  },
});

/** Files take turns in one process: to start one for each of them costs more CPU than the tests of many. */
const sharedProcess = { isolate: false };
const builtRefit = 'test/support/built-refit.ts';
/** For what waits for real processes. A test that needs its second attempt is a bug: the last lines of a run name each of them. */
const secondAttempt = { retry: 1 };
/** Each process has a real control plane to itself, one test file after the other. */
const realControlPlane = {
  ...sharedProcess,
  ...secondAttempt,
  globalSetup: ['test/testenv/global-setup.ts', builtRefit],
  pool: 'forks',
};
/** Tests that need programs of Debian, such as QEMU, runc, skopeo, OpenRC or dnf, some of which they fetch. */
const WITH_PROGRAMS = ['binary', 'image-push', 'install', 'kubeadm-packages', 'openrc'].map(
  (name) => `test/agent/${name}.test.ts`,
);
/** The second tier has what computes for long, so that the first one takes at most five minutes on two cores. */
const LARGER_MODELS = 'test/model/second-tier/*.test.ts';
const SMALL_BENCHES = ['fleet/fleet', 'capi/measure', 'rollback/measure'].map(
  (name) => `bench/${name}.test.ts`,
);
const realProcesses = {
  ...sharedProcess,
  ...secondAttempt,
  globalSetup: [builtRefit],
  pool: 'forks',
};
const borrowControlPlane = 'test/testenv/own-control-plane.ts';

export default defineConfig({
  test: {
    reporters: ['default', new CountReporter()],
    projects: [
      project(
        'unit',
        'computing',
        [
          '{src,sandbox,tools,bench}/**/*.test.ts',
          'test/{repo,faults,toy,support,parity}/**/*.test.ts',
        ],
        { ...sharedProcess, exclude: SMALL_BENCHES },
      ),
      // One exploration takes half a minute, and several times that on a busy machine.
      project('model', 'computing', ['test/model/**/*.test.ts'], {
        testTimeout: 300_000,
        exclude: [LARGER_MODELS],
      }),
      project('computed', 'computing', [LARGER_MODELS, ...SMALL_BENCHES], {
        testTimeout: 300_000,
      }),
      project('agent', 'waiting', ['test/{agent,attacks}/**/*.test.ts'], {
        ...realProcesses,
        exclude: WITH_PROGRAMS,
      }),
      // One browser, and the clusters in memory that its pages follow.
      project('ui', 'last', ['test/ui/**/*.test.ts'], { ...secondAttempt, pool: 'forks' }),
      project('programs', 'waiting', WITH_PROGRAMS, realProcesses),
      project('conformance', 'waiting', ['test/conformance/**/*.test.ts'], {
        ...realControlPlane,
        setupFiles: [borrowControlPlane],
      }),
      project('testenv', 'waiting', ['test/testenv/**/*.test.ts'], {
        ...realControlPlane,
        setupFiles: [borrowControlPlane, 'test/testenv/nothing-left.ts'],
      }),
      project('rights', 'last', ['test/rights/**/*.test.ts'], {
        ...realControlPlane,
        setupFiles: [borrowControlPlane],
      }),
    ],
  },
});
