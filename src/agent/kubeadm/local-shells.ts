/** Runs scripts on the agent's own host. */
import type { Shells } from '../../kubeadm/host.ts';
import { BROKEN, runProgram } from '../../kubeadm/run-program.ts';
import { RefitError } from '../../util/errors.ts';

/** `abort` only ends the wait: a step that has begun goes on without the agent, and running it again waits for it. */
export function localShells(abort: AbortSignal): Shells {
  return {
    async run(_host, script, patienceMs) {
      // As an argument: what is cut off when the agent dies would run as far as it came.
      const result = await runProgram('/bin/sh', ['-c', script], { patienceMs, abort });
      abort.throwIfAborted();
      if (result.code !== BROKEN) return result;
      throw new RefitError('REFIT_AGENT', `a script on this host was ended: ${result.stderr}`);
    },
  };
}
