/** Gives a real control plane to the test file that runs next. No other file uses this control plane at the same time. */
import { borrowControlPlane } from './control-plane.ts';

await borrowControlPlane();
