#!/usr/bin/env node
/** Owns the `refit` executable: signals, one clear line for every error, and the exit code. */
import { EXIT, RefitError } from '../util/errors.ts';

const interrupted = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupted.abort(new Error(name)));
// A reader that has seen enough, such as `head`, ends a watch.
process.stdout.on('error', (error) => interrupted.abort(error));

/** Each command loads only what it needs: an agent must stay small for months. */
async function run([command, ...rest]: readonly string[]): Promise<number> {
  const { signal: abort } = interrupted;
  if (command === 'agent') return await (await import('./agent.ts')).runAgent(rest, abort);
  if (command === 'help' && rest[0] === 'agent') return await run(['agent', '--help']);
  const [{ runProgram }, { standardOutput }] = await Promise.all([
    import('../cli/program.ts'),
    import('../cli/output.ts'),
  ]);
  return await runProgram(command === undefined ? ['--help'] : [command, ...rest], {
    controller: async (flags) => await (await import('./controller.ts')).runController(flags, abort),
    capiExtension: async (flags) => await (await import('./capi-extension.ts')).runCapiExtension(flags, abort),
    status: async (flags) => await (await import('./status.ts')).runStatus(flags, abort),
    why: async (node, flags) => await (await import('./status.ts')).runWhy(node, flags, abort),
    preview: async (flags) => await (await import('./status.ts')).runPreview(flags, abort),
    pause: async (flags) => await (await import('./controls.ts')).runPause(flags, abort),
    resume: async (flags) => await (await import('./controls.ts')).runResume(flags, abort),
    abort: async (flags) => await (await import('./controls.ts')).runAbort(flags, abort),
    retry: async (node, flags) => await (await import('./controls.ts')).runRetry(node, flags, abort),
    validate: async (file) => await (await import('../cli/validate.ts')).validate(file, standardOutput.write),
    kubeadmPlan: async (flags) => await (await import('./kubeadm.ts')).runKubeadmPlan(flags, abort),
    kubeadmApply: async (flags) => await (await import('./kubeadm.ts')).runKubeadmApply(flags, abort),
    write: (text) => standardOutput.write(text),
  });
}

try {
  process.exitCode = await run(process.argv.slice(2));
} catch (thrown) {
  const { describeProblem } = await import('../kube/transport/problems.ts');
  const error = thrown instanceof RefitError ? thrown : describeProblem(thrown);
  if (!interrupted.signal.aborted) process.stderr.write(`${error.line}\n`);
  // Not left to the event loop: work that could not be stopped in time must not go on behind the message.
  process.exit(interrupted.signal.aborted ? EXIT.interrupted : error.exitCode);
}
