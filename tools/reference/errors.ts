/** Writes the reference page of the errors: code, meaning, exit code, and what to do. */
import { ERRORS, type ErrorCode, EXIT } from '../../src/util/errors.ts';

const MEANINGS: Readonly<Record<ErrorCode, string>> = {
  REFIT_USAGE: 'The command line is not valid.',
  REFIT_KUBECONFIG: 'The kubeconfig cannot be read, or has no usable cluster.',
  REFIT_FILE: 'A file cannot be read, or does not contain what Refit needs.',
  REFIT_UNREACHABLE: 'The API server does not answer.',
  REFIT_BAD_ANSWER:
    'The server answers, but not as a Kubernetes API server: with HTML, with another kind, or without an end.',
  REFIT_TLS: 'A TLS certificate is not trusted, has expired or is not valid yet, on either side.',
  REFIT_UNAUTHORIZED: 'The API server does not accept the credentials.',
  REFIT_FORBIDDEN: 'The user lacks a permission on the API server.',
  REFIT_SSH: 'SSH to a host fails: it cannot be reached, or its host key has changed.',
  REFIT_REFUSED:
    'A rule or a host refuses the work, or the upgrade is not the one that was agreed to.',
  REFIT_CONTROL:
    'The command does not apply to this plan or node in its current state, or an admission policy or webhook forbids it.',
  REFIT_NO_CRD: 'The cluster lacks the CustomResourceDefinitions that Refit needs.',
  REFIT_PLAN_FAILED: 'The plan failed.',
  REFIT_TIMEOUT: 'The command did not finish within its time limit.',
  REFIT_AGENT: 'The agent cannot work on this host.',
  REFIT_INSTALL:
    'Refit cannot be installed or removed here, or the cluster does not sign a certificate.',
  REFIT_TESTENV: 'The real control plane for tests cannot be built or started.',
  REFIT_INTERNAL: 'An unexpected error.',
};

export function errorReference(): string {
  const exits = Object.entries(EXIT).map(([name, code]) => `${code} (${name})`);
  const rows = (Object.keys(ERRORS) as ErrorCode[]).map((code) => {
    const { exit, hint } = ERRORS[code];
    return `| \`${code}\` | ${MEANINGS[code]} | ${exit} | ${sentence(hint)} |`;
  });
  return `${[
    '# Errors',
    '',
    'Generated from `src/util/errors.ts` and `tools/reference/errors.ts` by `npm run generate`: edit it there.',
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
