/**
 * Defines the test projects: the files of each project, how the files are isolated, and which projects run at the same
 * time.
 */
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { CountReporter } from './tools/count-reporter.ts';

/** Projects of the same turn run at the same time. `workers` is the number of their files that run at once. */
const TURNS = {
  /**
   * The files of these projects compute, and some of them wait now and then. So there is one worker more than a small
   * machine has cores.
   */
  computing: { order: 0, workers: 3 },
  /** The files of these projects mostly wait for other processes and for real clocks. */
  waiting: { order: 1, workers: 6 },
  /** These projects check what the other projects left behind. */
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
    // Long enough for a busy machine. It is longer than the longest wait in a test, so that the wait can report what it
    // waited for.
    testTimeout: 180_000,
    // A file may wait until what it needs is built for the first time.
    hookTimeout: 1_200_000,
    // The limit of each wait for a value, unless the test sets another limit.
    expect: { poll: { timeout: 60_000 } },
    maxWorkers: TURNS[turn].workers,
    sequence: { groupOrder: TURNS[turn].order },
    // Tests start stand-ins hundreds of times. With NODE_COMPILE_CACHE, Node compiles their files only once. With GOGC,
    // short commands in Go, such as kubectl, end before they collect garbage, which would take a quarter of their CPU
    // time.
    env: {
      NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/compiled'),
      GOGC: '400',
    },
    // Young objects get 64 MiB instead of 16. Most objects of a test become garbage soon, and then V8 never copies
    // them.
    execArgv: ['--max-semi-space-size=64'],
    ...more,
  },
});

/**
 * Files run one after the other in the same process. Starting a process for each file would cost more CPU time than the
 * tests of many files.
 */
const sharedProcess = { isolate: false };
const builtRefit = 'test/support/built-refit.ts';
/**
 * For tests that wait for real processes. A test that needs its second attempt has a bug. The last lines of a run name
 * each such test.
 */
const secondAttempt = { retry: 1 };
/** Each process has its own real control plane, and runs one test file after the other. */
const realControlPlane = {
  ...sharedProcess,
  ...secondAttempt,
  globalSetup: ['test/testenv/global-setup.ts', builtRefit],
  pool: 'forks',
};
/** Tests that need programs of Debian, such as QEMU, runc, skopeo, OpenRC or dnf, some of which they fetch. */
const WITH_PROGRAMS = [
  'binary',
  'image-push',
  'install',
  'kubeadm-packages',
  'openrc',
  'preview-of-build',
].map((name) => `test/agent/${name}.test.ts`);
/**
 * Tests that take long because of their real processes: whole upgrades, downloads by agents that are killed, and the
 * scripts for kubeadm hosts. They run in the second tier, so that the first tier takes at most five minutes on two
 * cores.
 */
const LONG_RUNS = [
  'bundles',
  'configuration',
  'crash-points',
  'cut-runs',
  'demonstrations',
  'downloads',
  'examples',
  'failed-canary',
  'kill-runs',
  'kubeadm-certificates',
  'kept-binary',
  'kubeadm-containerd',
  'kubeadm-manifests',
  'kubeadm-next-start',
  'kubeadm-probe',
  'kubeadm-processors',
  'kubeadm-roll-back',
  'kubeadm-static-pods',
  'prefetch',
  'procedure',
  'serve',
].map((name) => `test/agent/${name}.test.ts`);
/** Attacks that take long for the same reasons. */
const LONG_ATTACKS = [
  'kubeadm-guards',
  'kubelet-arguments',
  'left-over-backup',
  'race-with-k0s-agent',
  'script-injection',
  'second-k0s-agent',
  'swapped-kubeadm',
  'wrong-hash-resumed',
].map((name) => `test/attacks/${name}.test.ts`);
/**
 * The second tier contains the tests that compute for a long time, so that the first tier takes at most five minutes on
 * two cores.
 */
const LARGER_MODELS = 'test/{model,scenes,truth}/second-tier/*.test.ts';
/** These tests explore states, too, and judge what Refit says in them. */
const SAID_IN_STATES = 'test/truth/explored*.test.ts';
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
          'test/{repo,dialects,faults,toy,support,parity,scenes,truth}/**/*.test.ts',
        ],
        { ...sharedProcess, exclude: [...SMALL_BENCHES, LARGER_MODELS, SAID_IN_STATES] },
      ),
      // One exploration takes half a minute, and several times as long on a busy machine.
      project('model', 'computing', ['test/model/**/*.test.ts', SAID_IN_STATES], {
        testTimeout: 300_000,
        exclude: [LARGER_MODELS],
      }),
      project('computed', 'computing', [LARGER_MODELS, ...SMALL_BENCHES], {
        testTimeout: 300_000,
      }),
      project('agent', 'waiting', ['test/{agent,attacks}/**/*.test.ts'], {
        ...realProcesses,
        exclude: [...WITH_PROGRAMS, ...LONG_RUNS, ...LONG_ATTACKS],
      }),
      // These tests start one browser, and the clusters in memory that its pages follow.
      project('ui', 'last', ['test/ui/**/*.test.ts'], { ...secondAttempt, pool: 'forks' }),
      project('programs', 'waiting', WITH_PROGRAMS, realProcesses),
      project('runs', 'waiting', [...LONG_RUNS, ...LONG_ATTACKS], realProcesses),
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
