/** Carries out an advice as a person would: it runs the commands, and knows what a person knows. */
import type { AdviceJson } from '../../../src/cli/contract/guidance.ts';
import type { PlanJson, StatusJson } from '../../../src/cli/status/json-form.ts';
import { nodes } from '../../../src/kube/resources.ts';
import type { Lab, Scenery } from '../labs/lab.ts';

/** The first advice about the plan of a lab. */
export interface FirstAdvice {
  readonly plan: PlanJson;
  readonly advice: AdviceJson;
}

/** Returns the first advice about a plan of the cluster; undefined if no plan has one. */
export async function firstAdvice({ stage }: Scenery): Promise<FirstAdvice | undefined> {
  const { plans } = JSON.parse(await stage.answer('status', '-o', 'json')) as StatusJson;
  for (const plan of plans) {
    const [advice] = plan.advice ?? [];
    if (advice !== undefined) return { plan, advice };
  }
  return undefined;
}

/** Does what the named operation of the lab does. */
export async function operate(lab: Lab, scenery: Scenery, name: string): Promise<void> {
  const all = [...lab.operations, ...(lab.furtherOperations ?? [])];
  const found = all.find((operation) => operation.name === name);
  if (!found) throw new Error(`the lab of ${lab.dialect} has no operation “${name}”`);
  await found.act(scenery);
}

/** Runs every command of the advice, and returns the answers that are refusals. */
export async function carryOut(
  lab: Lab,
  scenery: Scenery,
  { commands }: AdviceJson,
): Promise<string[]> {
  const refusals: string[] = [];
  for (const command of commands) {
    const [program, ...words] = command.split(' ');
    const operation = lab.byHand?.[command];
    if (operation !== undefined) await operate(lab, scenery, operation);
    else if (program === 'kubectl') await kubectl(lab, scenery, words);
    else {
      const meanings: Readonly<Record<string, string>> = { TEXT: 'advised', ...lab.meanings };
      const given = words.map((word) => meanings[word] ?? word);
      const known = words[0] === 'rollback' ? [...(lab.rollBackFlags ?? []), '--yes'] : [];
      const answer = await scenery.stage.answer(...given, ...known);
      if (/\bREFIT_[A-Z]+\b|\(exit code [1-9]/.test(answer)) refusals.push(`${command}: ${answer}`);
    }
    // A person needs a moment from one command to the next.
    await scenery.stage.wait(5);
  }
  return refusals;
}

/** Does what kubectl would do. A command that is not known here fails the test. */
async function kubectl(lab: Lab, scenery: Scenery, words: readonly string[]): Promise<void> {
  const [verb, first = '', ...more] = words;
  if (verb === 'uncordon') {
    const patch = { spec: { unschedulable: null } };
    for (const name of [first, ...more])
      await scenery.stage.client.patch(nodes, name, patch, { type: 'merge' });
    return;
  }
  if (verb === 'label') {
    const key = words.at(-1) ?? '';
    for (const name of more.slice(0, -1)) await withoutLabel(scenery, name, key.slice(0, -1));
    return;
  }
  const operation = {
    delete: 'the plan is deleted',
    apply: 'the plan is applied again',
    edit: NO_POLICY,
  }[verb ?? ''];
  if (verb === 'annotate') {
    const key = words.at(-1) ?? '';
    if (!key.endsWith('-') || lab.annotate === undefined) throw new Error(`what is “${key}”?`);
    await lab.annotate(scenery, { [key.slice(0, -1)]: null });
    return;
  }
  if (operation === undefined) throw new Error(`kubectl ${words.join(' ')} is not known here`);
  await operate(lab, scenery, operation);
}

async function withoutLabel({ stage }: Scenery, name: string, key: string): Promise<void> {
  const patch = { metadata: { labels: { [key]: null } } };
  await stage.client.patch(nodes, name, patch, { type: 'merge' });
}

const NO_POLICY = 'the policy is: nothing special';

/** Returns a text that differs if an advice is about another situation, other nodes, or another run. */
export function keyOf({ plan, advice }: FirstAdvice): string {
  return JSON.stringify([plan.uid, advice.situation, advice.nodes, advice.commands]);
}
