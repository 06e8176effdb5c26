/**
 * The command behind `npm run proof:facts`: the real programs of a minor version agree with what Refit knows about their
 * feature gates and flags.
 */
import { parseArgs } from 'node:util';
import { systemClock } from '../../../src/util/clock.ts';
import { semaphore } from '../../../src/util/waits.ts';
import { NEWEST_KNOWN, WRITTEN } from '../../../src/versions/facts.ts';
import { COMPONENTS, type Component, wordsOf } from '../../../src/versions/minor-facts.ts';
import { isKnown } from '../../../src/versions/removed-settings.ts';
import { faultOf, type Setting } from '../../../src/versions/settings.ts';
import { ensureBuilt } from '../../../tools/controlplane/build.ts';
import { kubernetesProgram } from '../../../tools/controlplane/components.ts';
import { minorOf, moduleOf } from '../../../tools/facts/minors.ts';
import { runMain } from '../../../tools/main.ts';
import { Checks } from '../checks.ts';
import { conclude, parsed } from '../command.ts';
import { type Answer, askFlag, askGate } from './programs.ts';

const HELP = `Usage: npm run proof:facts -- [--minor 1.NN]

Builds kube-apiserver, kube-controller-manager, kube-scheduler, kubelet and kube-proxy of a minor version, and gives each of them every
feature gate with both values and every flag that some known minor version has. Program and facts must agree in each case. Needs Go and
the module proxy. The first build takes ten minutes, and the rest a few minutes. Nothing is left behind.

  --minor 1.NN  the minor version; by default the newest one that Refit knows
  --help        this text
`;

const AT_ONCE = 4;
/** The fewest removed gates that a run must have tried, so that it proves something. */
const FEWEST_REMOVED = 50;

function log(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Returns every name in the facts of all known minor versions. */
function namesOf(texts: readonly (string | undefined)[]): string[] {
  return [...new Set(texts.flatMap((each) => wordsOf(each ?? '')))].toSorted();
}

const GATES = namesOf(WRITTEN.flatMap(({ gates }) => Object.values(gates)));

interface Case {
  readonly setting: Setting;
  readonly answer: Answer;
  readonly said: string;
}

/** Returns the cases in which the program says another thing than the facts. */
function disagreeing(cases: readonly Case[], release: string): string[] {
  return cases.flatMap(({ setting, answer, said }) => {
    const isFree = isKnown(setting, release) && faultOf(setting, release) === undefined;
    const expected = isFree ? 'taken' : 'refused';
    if (answer === expected) return [];
    const { kind, name, value } = setting;
    const which = kind === 'flag' ? `--${name}` : `${name}=${value}`;
    const words = said.trim().split('\n').at(-1) ?? '';
    return [`${which} is ${expected} by the facts, and ${answer} by the program: ${words}`];
  });
}

async function gateCases(path: string, component: Component): Promise<Case[]> {
  const withSlot = semaphore(AT_ONCE);
  return await Promise.all(
    GATES.flatMap((name) =>
      [true, false].map(async (value): Promise<Case> => {
        const setting: Setting = { kind: 'gate', component, name, value, place: 'the proof' };
        const asked = await withSlot(async () => await askGate(path, component, { name, value }));
        return { setting, ...asked };
      }),
    ),
  );
}

async function flagCases(path: string, component: Component): Promise<Case[]> {
  const withSlot = semaphore(AT_ONCE);
  const names = namesOf(WRITTEN.map(({ flags }) => flags[component]));
  return await Promise.all(
    names.map(async (name): Promise<Case> => {
      const setting: Setting = { kind: 'flag', component, name, place: 'the proof' };
      return { setting, answer: await withSlot(async () => await askFlag(path, name)), said: '' };
    }),
  );
}

/** Resolves with the exit code. */
async function main(args: string[]): Promise<number> {
  const started = systemClock.monotonic();
  const { values } = parsed(() =>
    parseArgs({ args, options: { minor: { type: 'string' }, help: { type: 'boolean' } } }),
  );
  if (values.help === true) {
    process.stdout.write(HELP);
    return 0;
  }
  const minor = minorOf(values.minor ?? `1.${NEWEST_KNOWN}`);
  const { module, release } = moduleOf(minor);
  const checks = new Checks(log);
  const options = { environment: process.env, log, now: () => systemClock.monotonic() };
  const paths = await ensureBuilt(
    COMPONENTS.map((name) => [name, kubernetesProgram(name, module, release)]),
    options,
  );
  let removed = 0;
  for (const [index, component] of COMPONENTS.entries()) {
    const path = paths[index] ?? '';
    const gates = await gateCases(path, component);
    removed += gates.filter(({ answer, setting }) => answer === 'refused' && setting.value).length;
    await checks.check(`${component} ${release}: ${gates.length} settings of gates`, () =>
      disagreeing(gates, release),
    );
    const flags = await flagCases(path, component);
    await checks.check(`${component} ${release}: ${flags.length} flags`, () =>
      disagreeing(flags, release),
    );
  }
  await checks.check(`the programs refused gates: ${removed}`, () =>
    removed >= FEWEST_REMOVED ? [] : [`${removed} are fewer than ${FEWEST_REMOVED}`],
  );
  return conclude(checks.outcome, started);
}

await runMain(main);
