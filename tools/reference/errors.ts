/** Writes the reference page of the errors: code, meaning, exit code, and what to do. */
import { ERRORS, EXIT } from '../../src/util/errors.ts';

export function errorReference(): string {
  const exits = Object.entries(EXIT).map(([name, code]) => `${code} (${name})`);
  const rows = Object.entries(ERRORS).map(
    ([code, { meaning, exit, hint }]) => `| \`${code}\` | ${meaning} | ${exit} | ${sentence(hint)} |`,
  );
  return `${[
    '# Errors',
    '',
    'Generated from `src/util/errors.ts` by `npm run generate`: edit it there.',
    'A process that gives up prints one line: the code, what happened, and what to do. Its exit code is one of',
    `${exits.join(', ')}.`,
    '',
    '| code | meaning | exit code | what to do |',
    '|---|---|---|---|',
    ...rows,
  ].join('\n')}\n`;
}

function sentence(hint: string): string {
  return `${hint.charAt(0).toUpperCase()}${hint.slice(1)}.`;
}
