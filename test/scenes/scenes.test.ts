/** Plays the scenes of the first tier. */
import { FIRST_TIER, testScenes } from './played.ts';

testScenes(FIRST_TIER);
