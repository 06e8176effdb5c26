/** Runs `refit capi-extension` for the machines of this proof, whose agents download from its mirror. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type Extension, prepareExtension } from '../../../../sandbox/cluster/hook-extension.ts';
import { MIRROR } from './agent.ts';

/** Prepares an extension, and writes its certificates below `directory`. Starts nothing. */
export async function extensionFor(directory: string, kubeconfig: string): Promise<Extension> {
  const unused = {
    startLeading: async () => await Promise.reject(new Error('unused')),
    downloads: { url: MIRROR },
  };
  return await prepareExtension({ cluster: unused, directory, kubeconfig });
}

export interface RunningExtension {
  /** Returns what the extension has written to standard error so far. */
  said(): string;
  stop(): Promise<void>;
}

/** Starts the extension. `refit` is the path of the built command. */
export function runExtension(refit: string, args: readonly string[]): RunningExtension {
  const child = spawn(process.execPath, [refit, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  const closed = once(child, 'close');
  let said = '';
  child.stderr.on('data', (chunk) => {
    said += String(chunk);
  });
  return {
    said: () => said,
    async stop() {
      child.kill('SIGKILL');
      await closed;
    },
  };
}
