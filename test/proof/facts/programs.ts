/** Asks the real programs of a minor version which feature gates and flags they take. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { Component } from '../../../src/versions/minor-facts.ts';

/** Milliseconds that a program may take to refuse its arguments. */
const WITHIN_MS = 30_000;

/**
 * Arguments with which a program ends as soon as it has read its feature gates. Some programs print their version only
 * after that, and the others refuse an argument that they look at later.
 */
const ENDS: Readonly<Record<Component, readonly string[]>> = {
  'kube-apiserver': ['--version'],
  'kube-controller-manager': ['--version'],
  'kube-scheduler': ['--version'],
  kubelet: ['--max-pods=-1'],
  'kube-proxy': ['--config-sync-period=-1s', '--kubeconfig=/nonexistent'],
};

/** What a program says about a setting. `unclear` is an answer that is about something else. */
export type Answer = 'taken' | 'refused' | 'unclear';

/** Resolves with whether the program takes the gate with this value, and with its words. */
export async function askGate(
  path: string,
  component: Component,
  { name, value }: GateQuestion,
): Promise<{ readonly answer: Answer; readonly said: string }> {
  const said = await outputOf(path, [`--feature-gates=${name}=${value}`, ...ENDS[component]]);
  const isUnknown = said.includes(`unrecognized feature gate: ${name}`);
  const isLocked = said.includes(`cannot set feature gate ${name} to ${value}`);
  if (isUnknown || isLocked) return { answer: 'refused', said };
  // A gate that needs another one, or that another one needs, is known and free.
  const isOfOthers = /unrecognized feature gate|cannot set feature gate/.test(said);
  return { answer: isOfOthers ? 'unclear' : 'taken', said };
}

export interface GateQuestion {
  readonly name: string;
  readonly value: boolean;
}

/** Resolves with whether the program knows the flag. */
export async function askFlag(path: string, name: string): Promise<Answer> {
  const said = await outputOf(path, [`--${name}=1`, '--version']);
  return said.includes(`unknown flag: --${name}`) ? 'refused' : 'taken';
}

async function outputOf(path: string, args: readonly string[]): Promise<string> {
  const child = spawn(path, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: WITHIN_MS,
    killSignal: 'SIGKILL',
  });
  const [stdout, stderr] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return `${stdout}${stderr}`;
}
