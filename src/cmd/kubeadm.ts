/** Runs `refit kubeadm plan` and `refit kubeadm apply` in this terminal. */
import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline/promises';
import { applyKubeadm, planKubeadm } from '../cli/kubeadm/command.ts';
import type { KubeadmApplyFlags, KubeadmFlags, KubeadmParts } from '../cli/kubeadm/session.ts';
import { standardOutput } from '../cli/output.ts';
import { systemClock } from '../util/clock.ts';
import { stderrLogger } from '../util/log.ts';

export async function runKubeadmPlan(flags: KubeadmFlags, abort: AbortSignal): Promise<number> {
  return await planKubeadm(flags, partsOf(abort));
}

export async function runKubeadmApply(flags: KubeadmApplyFlags, abort: AbortSignal): Promise<number> {
  return await applyKubeadm(flags, partsOf(abort));
}

function partsOf(abort: AbortSignal): KubeadmParts {
  return {
    clock: systemClock,
    output: standardOutput,
    // The status view shows progress.
    log: stderrLogger('warn'),
    abort,
    ask: async (question) => await askTerminal(question, abort),
    random: randomBytes(4).toString('hex'),
    jitter: Math.random,
  };
}

async function askTerminal(question: string, abort: AbortSignal): Promise<string | undefined> {
  if (!process.stdin.isTTY) return undefined;
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return await terminal.question(question, { signal: abort });
  } finally {
    terminal.close();
  }
}
