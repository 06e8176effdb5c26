/** Runs a staged binary once, to see whether it starts here and has the right version. */
import { execFile } from 'node:child_process';
import type { StepOutcome } from '../steps/step.ts';

export interface Trial {
  readonly binary: string;
  /** Version it must print; undefined: any version. */
  readonly version?: string;
  readonly timeoutMs: number;
}

const MAX_OUTPUT_BYTES = 64 * 1024;

/** Runs `<binary> version`: it must end with 0 in time and print the version as a separate word. */
export async function runTrial({ binary, version, timeoutMs }: Trial): Promise<StepOutcome> {
  const options = { timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: MAX_OUTPUT_BYTES } as const;
  return await new Promise((resolve) => {
    execFile(binary, ['version'], options, (error, stdout, stderr) => {
      if (error) return resolve(no(`trial run of the new binary: ${whyNot(error, timeoutMs, stderr)}`));
      if (version === undefined || stdout.split(/\s+/).includes(version)) return resolve({ ok: true });
      const printed = stdout.trim().split('\n')[0]?.slice(0, 80) ?? '';
      return resolve(no(`trial run of the new binary: it reports version "${printed}" instead of ${version}`));
    });
  });
}

function whyNot(error: Error & { killed?: boolean; code?: unknown }, timeoutMs: number, stderr: string): string {
  if (error.killed === true && error.code !== 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') {
    return `it did not end within ${timeoutMs / 1000} s`;
  }
  const said = stderr.trim().split('\n')[0]?.slice(0, 160) ?? '';
  return typeof error.code === 'number' ? `it ended with code ${error.code} ${said}`.trim() : error.message;
}

function no(reason: string): StepOutcome {
  return { ok: false, reason };
}
